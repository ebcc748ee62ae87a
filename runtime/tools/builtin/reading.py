"""What commands of a read-only mode find in their environment: nothing that anybody granted.

A repository says in its own files which programs `git` is to start, and a repository may be
somebody else's. What stands here is above those files and switches off all that git can switch off.
`diff.external` and the filters of `.gitattributes` it cannot: they run, in the view that cannot be
written, without a network.
"""

from collections.abc import Mapping

_GIT_CONFIG = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "log.showSignature": "false",
    "gpg.program": "/bin/false",
    "gpg.openpgp.program": "/bin/false",
    "gpg.ssh.program": "/bin/false",
    "gpg.x509.program": "/bin/false",
}


def _config() -> Mapping[str, str]:
    """The configuration as variables (git-config(1), GIT_CONFIG_COUNT)."""
    found = {"GIT_CONFIG_COUNT": str(len(_GIT_CONFIG))}
    for number, (key, value) in enumerate(_GIT_CONFIG.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


READING_ENV: Mapping[str, str] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    # `git status` writes what it learned into the index otherwise, and starts a hook then.
    "GIT_OPTIONAL_LOCKS": "0",
    # An object that is missing is fetched otherwise, over whatever the repository names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    **_config(),
}
