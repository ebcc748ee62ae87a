"""Every key that git knows is held, or known to start no program (POL-9)."""

import re
import shutil
import subprocess

import pytest

from runtime.tools.git_config import BadConfig, Entry
from runtime.tools.git_keys import ALWAYS, may_be_across, stand_in

pytestmark = pytest.mark.requirement("POL-9")

# A name between dots is `X`; a star stands only where git knows the parts of a kind by no list.
HARMLESS = """
# Switches, numbers, names from a list of git's own, colours, dates and ways to print.
add.X.usebuiltin add.ignore-errors add.ignoreerrors advice.* am.keepcr am.threeway
apply.ignorewhitespace apply.whitespace bitmappseudomerge.X.decay bitmappseudomerge.X.maxmerges
bitmappseudomerge.X.pattern bitmappseudomerge.X.samplerate bitmappseudomerge.X.stablesize
bitmappseudomerge.X.stablethreshold bitmappseudomerge.X.threshold blame.blankboundary
blame.coloring blame.date blame.ignorerevsfile blame.markignoredlines blame.markunblamablelines
blame.showemail blame.showroot branch.autosetupmerge branch.autosetuprebase branch.sort
checkout.defaultremote checkout.guess checkout.thresholdforparallelism checkout.workers
clean.requireforce clone.defaultremotename clone.filtersubmodules clone.rejectshallow color.*
column.* commit.cleanup commit.status commit.verbose commitgraph.changedpathsversion
commitgraph.generationversion commitgraph.maxnewfilters commitgraph.readchangedpaths core.abbrev
core.autocrlf core.bare core.bigfilethreshold core.checkroundtripencoding core.checkstat
core.commentchar core.commentstring core.commitgraph core.compression core.createobject
core.deltabasecachelimit core.eol core.filemode core.filesreflocktimeout core.fsmonitorhookversion
core.fsync core.fsyncmethod core.fsyncobjectfiles core.hidedotfiles core.ignorecase
core.ignorestat core.lockfilepid core.logallrefupdates core.loosecompression core.maxtreedepth
core.multipackindex core.packedgitlimit core.packedgitwindowsize core.packedrefstimeout
core.precomposeunicode core.prefersymlinkrefs core.preloadindex core.quotepath
core.repositoryformatversion core.restrictinheritedhandles core.safecrlf core.sharedrepository
core.sparsecheckout core.sparsecheckoutcone core.splitindex core.symlinks core.trustctime
core.untrackedcache core.usereplacerefs core.warnambiguousrefs core.whitespace
credential.interactive credential.protectprotocol credential.sanitizeprompt credential.usehttppath
credentialcache.ignoresighup credentialstore.locktimeoutms diff.X.algorithm diff.X.binary
diff.X.cachetextconv diff.X.trustexitcode diff.algorithm diff.autorefreshindex diff.colormoved
diff.colormovedws diff.context diff.dirstat diff.ignoresubmodules diff.indentheuristic
diff.interhunkcontext diff.mnemonicprefix diff.noprefix diff.relative diff.renamelimit
diff.renames diff.statgraphwidth diff.submodule diff.suppressblankempty diff.trustexitcode
diff.wserrorhighlight difftool.guidefault difftool.prompt difftool.trustexitcode
fastimport.unpacklimit feature.* feature.experimental feature.manyfiles fetch.all
fetch.bundlecreationtoken fetch.bundleuri fetch.fsck.* fetch.fsckobjects fetch.hiderefs
fetch.negotiationalgorithm fetch.output fetch.parallel fetch.prune fetch.prunetags
fetch.recursesubmodules fetch.showforcedupdates fetch.unpacklimit fetch.writecommitgraph
fsmonitor.allowremote fsmonitor.socketdir gc.X.reflogexpire gc.X.reflogexpireunreachable
gc.aggressivedepth gc.aggressivewindow gc.auto gc.autodetach gc.autopacklimit gc.bigpackthreshold
gc.cruftpacks gc.expiretocommits gc.logexpiry gc.maxcruftsize gc.packrefs gc.pruneexpire
gc.reflogexpire gc.reflogexpireunreachable gc.repackfilter gc.repackfilterto gc.rerereresolved
gc.rerereunresolved gc.worktreepruneexpire gc.writecommitgraph gitweb.* grep.column
grep.extendedregexp grep.fallbacktonoindex grep.fullname grep.linenumber grep.patterntype
grep.threads index.recordendofindexentries index.recordoffsettable index.skiphash index.sparse
index.threads index.version interactive.singlekey log.abbrevcommit log.date log.decorate
log.diffmerges log.excludedecoration log.follow log.graphcolors log.initialdecorationset
log.mailmap log.showroot log.showsignature lsrefs.unborn mailinfo.scissors maintenance.X.auto
maintenance.X.enabled maintenance.X.schedule maintenance.auto maintenance.autodetach
maintenance.strategy merge.autostash merge.branchdesc merge.conflictstyle merge.defaulttoupstream
merge.directoryrenames merge.ff merge.log merge.renamelimit merge.renames merge.renormalize
merge.stat merge.suppressdest merge.verbosity merge.verifysignatures mergetool.X.hasoutput
mergetool.X.hideresolved mergetool.X.trustexitcode mergetool.X.useautomerge mergetool.guidefault
mergetool.hideresolved mergetool.keepbackup mergetool.keeptemporaries mergetool.prompt
mergetool.writetotemp pack.allowpackreuse pack.compression pack.deltacachelimit
pack.deltacachesize pack.depth pack.indexversion pack.island pack.islandcore pack.packsizelimit
pack.preferbitmaptips pack.readreverseindex pack.threads pack.usebitmapboundarytraversal
pack.usebitmaps pack.usepathwalk pack.usesparse pack.window pack.windowmemory
pack.writebitmaphashcache pack.writebitmaplookuptable pack.writereverseindex
promisor.acceptfromserver promisor.advertise promisor.checkfields promisor.storefields
protocol.version pull.ff pull.rebase push.autosetupremote push.default push.followtags
push.gpgsign push.negotiate push.pushoption push.recursesubmodules push.usebitmaps
push.useforceifincludes rebase.abbreviatecommands rebase.autosquash rebase.autostash
rebase.backend rebase.forkpoint rebase.maxlabellength rebase.missingcommitscheck
rebase.rebasemerges rebase.reschedulefailedexec rebase.stat rebase.updaterefs
receive.advertiseatomic receive.advertisepushoptions receive.autogc receive.certnonceseed
receive.certnonceslop receive.denycurrentbranch receive.denydeletecurrent receive.denydeletes
receive.denynonfastforwards receive.fsck.* receive.fsckobjects receive.hiderefs receive.keepalive
receive.maxinputsize receive.procreceiverefs receive.shallowupdate receive.unpacklimit
receive.updateserverinfo reftable.blocksize reftable.geometricfactor reftable.indexobjects
reftable.locktimeout reftable.restartinterval repack.cruftdepth repack.cruftthreads
repack.cruftwindow repack.cruftwindowmemory repack.packkeptobjects repack.updateserverinfo
repack.usedeltabaseoffset repack.usedeltaislands repack.writebitmaps replay.refaction
rerere.autoupdate rerere.enabled revert.reference safe.barerepository safe.directory
showbranch.default sparse.expectfilesoutsideofpatterns splitindex.maxpercentchange
splitindex.sharedindexexpire ssh.variant stash.index stash.showincludeuntracked stash.showpatch
stash.showstat stash.usebuiltin status.aheadbehind status.branch status.comparebranches
status.displaycommentprefix status.relativepaths status.renamelimit status.renames status.short
status.showstash status.showuntrackedfiles status.submodulesummary
submodule.alternateerrorstrategy submodule.alternatelocation submodule.fetchjobs
submodule.propagatebranches submodule.recurse tag.forcesignannotated tag.gpgsign tag.sort
tar.umask transfer.advertiseobjectinfo transfer.advertisesid transfer.bundleuri
transfer.credentialsinurl transfer.fsckobjects transfer.hiderefs transfer.unpacklimit
uploadarchive.allowunreachable uploadpack.allowanysha1inwant uploadpack.allowfilter
uploadpack.allowreachablesha1inwant uploadpack.allowrefinwant uploadpack.allowsidebandall
uploadpack.allowtipsha1inwant uploadpack.hiderefs uploadpack.keepalive uploadpackfilter.X.allow
uploadpackfilter.X.maxdepth uploadpackfilter.allow versionsort.suffix worktree.guessremote
worktree.userelativepaths
# A file, a folder or an object that is read as data, or into which data is written.
attr.tree commit.template core.attributesfile core.excludesfile core.worktree diff.orderfile
format.attach format.cc format.coverfromdescription format.coverletter format.encodeemailheaders
format.filenamemaxlength format.forceinbodyfrom format.from format.headers format.mboxrd
format.notes format.numbered format.outputdirectory format.pretty format.signature
format.signaturefile format.signoff format.subjectprefix format.suffix format.thread format.to
format.useautobase fsck.* gpg.X.allowedsignersfile gpg.X.revocationfile help.htmlpath mailmap.blob
mailmap.file sendemail.X.file sendemail.aliasesfile sendemail.aliasfiletype
# Patterns and texts that git itself compares or prints.
core.alternaterefsprefixes core.notesref diff.X.wordregex diff.X.xfuncname diff.wordregex
merge.X.name notes.X.<command> notes.X.mergestrategy notes.displayref notes.mergestrategy
notes.rewritemode notes.rewriteref trailer.separators
# People and keys: a value of a flag of its own.
author.* commit.gpgsign committer.* credential.X.* credential.username gpg.format
gpg.mintrustlevel user.email user.name user.signingkey user.useconfigonly
# The name of another driver.
merge.X.recursive
# Addresses. What would start a program is held where it is reached: `ext::` by protocol.ext.allow,
# the other side of a path by what a repository may have there, ssh and proxies by variables.
branch.X.description branch.X.merge branch.X.pushremote branch.X.rebase branch.X.remote bundle.*
bundle.X.* bundle.X.uri bundle.heuristic bundle.mode bundle.version imap.authmethod imap.folder
imap.host imap.pass imap.port imap.preformattedhtml imap.sslverify imap.user remote.X.fetch
remote.X.followremotehead remote.X.mirror remote.X.partialclonefilter remote.X.promisor
remote.X.proxy remote.X.proxyauthmethod remote.X.prune remote.X.prunetags remote.X.push
remote.X.pushurl remote.X.serveroption remote.X.skipdefaultupdate remote.X.skipfetchall
remote.X.tagopt remote.X.url remote.pushdefault remotes.<group> submodule.X.active
submodule.X.branch submodule.X.fetchrecursesubmodules submodule.X.ignore submodule.X.url
submodule.active url.X.insteadof url.X.pushinsteadof
# The kinds of address that may be used; `ext` is set above.
protocol.X.allow protocol.allow
# Libcurl reads them as files, numbers, hosts and names from a list.
http.X.* http.cookiefile http.curloptresolve http.delegation http.emptyauth http.extraheader
http.followredirects http.keepalivecount http.keepaliveidle http.keepaliveinterval
http.lowspeedlimit http.lowspeedtime http.maxrequests http.maxretries http.minsessions http.noepsv
http.pinnedpubkey http.postbuffer http.proactiveauth http.proxy http.proxyauthmethod
http.proxysslcainfo http.proxysslcert http.proxysslcertpasswordprotected http.proxysslkey
http.savecookies http.schannelcheckrevoke http.schannelusesslcainfo http.sslbackend http.sslcainfo
http.sslcapath http.sslcert http.sslcertpasswordprotected http.sslcipherlist http.sslkey
http.ssltry http.sslverify http.sslversion http.useragent http.version
# Whole files are followed by whoever reads the configuration.
include.path includeif.X.path
# What a repository is made of.
extensions.compatobjectformat extensions.noop extensions.objectformat extensions.partialclone
extensions.preciousobjects extensions.refstorage extensions.relativeworktrees
extensions.worktreeconfig init.defaultbranch init.defaultobjectformat init.defaultrefformat
# Only files of the system and of a home may have them.
trace2.* uploadpack.packobjectshook
# The completion of a shell lists these names.
completion.*
# Shown by graphical programs, and chosen there by hand.
gui.blamehistoryctx gui.commitmsgwidth gui.copyblamethreshold gui.diffcontext gui.displayuntracked
gui.encoding gui.fastcopyblame gui.matchtrackingbranch gui.newbranchtemplate gui.pruneduringfetch
gui.spellingdictionary gui.trustmtime guitool.X.argprompt guitool.X.confirm guitool.X.needsfile
guitool.X.noconsole guitool.X.norescan guitool.X.prompt guitool.X.revprompt guitool.X.revunmerged
guitool.X.title
# Names of help viewers, and of other subcommands that are like a misspelled one.
help.autocorrect help.format man.viewer
# A server for old clients, which is started by hand, and its database.
gitcvs.allbinary gitcvs.commitmsgannotation gitcvs.dbname gitcvs.dbpass gitcvs.dbtablenameprefix
gitcvs.dbuser gitcvs.enabled gitcvs.logfile gitcvs.usecrlfattr
# Mail: addresses, and what is said to a server.
sendemail.X.* sendemail.annotate sendemail.bcc sendemail.cc sendemail.chainreplyto
sendemail.confirm sendemail.envelopesender sendemail.forbidsendmailvariables sendemail.from
sendemail.identity sendemail.imapsentfolder sendemail.multiedit sendemail.outlookidfix
sendemail.signedoffbycc sendemail.smtpbatchsize sendemail.smtpdomain sendemail.smtpencryption
sendemail.smtppass sendemail.smtprelogindelay sendemail.smtpserverport sendemail.smtpssl
sendemail.smtpsslcertpath sendemail.smtpuser sendemail.suppresscc sendemail.suppressfrom
sendemail.thread sendemail.to sendemail.transferencoding sendemail.useimaponly sendemail.validate
sendemail.xmailer
# GIT_PROXY_COMMAND stands above it.
core.gitproxy
# The name of an event and of a format: the commands beside them are held, or there are none.
hook.X.event pretty.<name>
"""
NEWER = """
attr.tree bundle.heuristic core.commentString core.lockfilePid core.maxTreeDepth
fetch.bundleURI format.mboxrd gc.recentObjectsHook gc.repackFilterTo hook.<name>.command
hook.<name>.event http.keepAliveIdle http.sslCertType http.sslKeyType
init.defaultRefFormat mergetool.<variant>.layout promisor.acceptFromServer
promisor.advertise rebase.maxLabelLength remote.<name>.followRemoteHEAD
remote.<name>.serverOption sendemail.headerCmd sendemail.mailmap.file
sendemail.<identity>.smtpServerOption trailer.<alias>.cmd alias.<name>.command
fetch.hideRefs fetch.bundleCreationToken fetch.all gc.expireToCommits gc.maxCruftSize
pack.readReverseIndex pack.useBitmapBoundaryTraversal pack.usePathWalk extensions.refStorage
commitGraph.changedPathsVersion index.skipHash sendemail.outlookidfix http.proactiveAuth
worktree.useRelativePaths maintenance.autoDetach extensions.compatObjectFormat transfer.bundleURI
reftable.blockSize stash.useBuiltin replay.refAction stash.index
bitmapPseudoMerge.<name>.pattern status.compareBranches uploadpack.allowSidebandAll
"""
"""Keys of other versions, from 2.31 on."""
PROGRAMS = """
core.alternateRefsCommand core.askPass core.editor core.fsmonitor core.hooksPath core.pager
core.sshCommand rebase.instructionFormat mergetool.vimdiff.layout instaweb.gitwebdir
instaweb.httpd instaweb.browser instaweb.port instaweb.modulePath init.templateDir svn.configDir
svn.authorsProg pager.<cmd> i18n.commitEncoding i18n.logOutputEncoding branch.<name>.mergeOptions
sequence.editor credential.helper credential.<url>.helper diff.external diff.<driver>.command
diff.<driver>.textconv filter.<driver>.clean filter.<driver>.smudge filter.<driver>.process
merge.<driver>.driver gpg.program gpg.<format>.program gpg.ssh.defaultKeyCommand
interactive.diffFilter difftool.<tool>.cmd difftool.<tool>.path mergetool.<tool>.cmd
mergetool.<tool>.path browser.<tool>.cmd man.<tool>.path guitool.<name>.cmd web.browser
help.browser imap.tunnel sendemail.toCmd sendemail.ccCmd sendemail.smtpServer
sendemail.sendmailCmd sendemail.smtpServerOption gc.recentObjectsHook
remote.<name>.uploadpack remote.<name>.receivepack tar.<format>.command
trailer.<key>.command submodule.<name>.update gitcvs.dbDriver http.sslKeyType
core.protectHFS core.unsetenvvars alias.<name> hook.<name>.command remote.<name>.vcs merge.tool
diff.guitool pull.twohead pull.octopus lfs.extension.<name>.clean lfs.customtransfer.<name>.path
"""
"""Keys that start a program, or lead to one, in some version of git."""


def words(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return " ".join(lines).split()


def plain(key: str) -> str:
    """In small letters, with `X` for what stands between dots."""
    section, *middle, name = key.split(".")
    return ".".join([section.lower(), *("X" for _ in middle), name.lower()])


def spelled(key: str) -> set[str]:
    """The key with its middle as it is, and as any."""
    section, *middle, name = key.split(".")
    exact = ".".join([section, *middle, name]).lower()
    return {plain(key), exact}


def pattern(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word).replace(r"\*", ".*"))


HARMLESS_KEYS = [pattern(word) for word in words(HARMLESS)]


def entry(key: str, value: str = "../evil of 'mine'; sh") -> Entry:
    section, *middle, name = key.split(".")
    # Git's own help has a star or a word for a name.
    name = re.sub(r"[^a-zA-Z0-9-]", "", name) or "any"
    return Entry(section.lower(), ".".join(middle) if middle else None, name.lower(), value)


def held(key: str) -> bool:
    """Whether a value that starts a program has none of its effect."""
    always = {name.lower() for name in ALWAYS}
    values = ("../evil of 'mine'; sh", "!sh evil")
    try:
        standing = any(stand_in(entry(key, value)) is not None for value in values)
    except BadConfig:
        return True
    return standing or key.lower() in always


def known() -> list[str]:
    if shutil.which("git") is None:
        return []
    done = subprocess.run(
        ["git", "help", "--config"], capture_output=True, text=True, check=True, timeout=60
    )
    return [line for line in done.stdout.split("\n\n")[0].split() if "." in line]


def test_every_key_of_this_git_is_held_or_known_to_be_harmless() -> None:
    keys = known()
    if not keys:
        pytest.skip("git is not installed (apt install git)")
    assert len(keys) > 500
    unknown = [
        key
        for key in [*keys, *words(NEWER)]
        if not held(key)
        and not any(one.fullmatch(name) for one in HARMLESS_KEYS for name in spelled(key))
    ]
    assert unknown == []


@pytest.mark.parametrize("key", words(PROGRAMS))
def test_a_key_that_starts_a_program_is_held_and_not_across(key: str) -> None:
    assert held(key)
    assert not may_be_across(entry(key))


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [
        *(("i18n.logOutputEncoding", name, True) for name in ("UTF-8", "latin1", "ISO-8859-15")),
        *(("i18n.logOutputEncoding", name, True) for name in ("windows-1252", "Shift_JIS", "GBK")),
        *(("i18n.commitEncoding", name, False) for name in ("IBM856", "CP856", "UTF-16BE")),
        *(("i18n.commitEncoding", name, False) for name in ("ASCII//TRANSLIT", "", "cp037")),
        *(("branch.x.mergeOptions", flags, True) for flags in ("--no-ff", " --no-ff --log", "")),
        *(("branch.x.mergeOptions", flags, False) for flags in ("-s octopus -X ''", "-X a", "-S")),
        *(("pager.log", value, True) for value in ("false", "True", "0", "")),
        *(("pager.log", value, False) for value in ("sh evil", "less", "2")),
        ("branch.x.merge", "refs/heads/main", True),
        ("remote.x.vcs", "svn", True),
        ("submodule.x.update", "rebase", True),
        ("submodule.x.update", " !sh", False),
    ],
)
def test_a_key_is_kept_where_its_value_starts_nothing(key: str, value: str, kept: bool) -> None:
    assert (stand_in(entry(key, value)) is None) is kept


@pytest.mark.parametrize(
    ("key", "value", "across"),
    [
        *((f"core.{name}", "true", True) for name in ("bare", "fileMode", "logAllRefUpdates")),
        *((f"remote.o.{name}", "x", True) for name in ("url", "fetch", "pushurl")),
        *((f"branch.a.b.{name}", "x", True) for name in ("remote", "merge", "description")),
        *(("receive.denyCurrentBranch", value, True) for value in ("refuse", "ignore", "warn")),
        *(("receive.denyCurrentBranch", value, False) for value in ("updateInstead",)),
        *((f"remote.o.{name}", "x", False) for name in ("promisor", "partialclonefilter", "vcs")),
        *((f"extensions.{name}", "o", False) for name in ("partialClone",)),
        *((key, "x", False) for key in ("protocol.ext.allow", "protocol.allow", "http.proxy")),
        *((key, "x", False) for key in ("credential.helper", "core.hooksPath", "core.fsmonitor")),
        *((key, "x", False) for key in ("include.path", "a.new.key", "uploadpack.packObjectsHook")),
        *((key, "x", False) for key in ("branch.a.mergeOptions", "remote.url", "core.x.bare")),
        ("user.name", "A", True),
        ("submodule.s.url", "../s", True),
        ("submodule.s.update", "checkout", False),
        ("advice.detachedHead", "false", True),
        ("pager.log", "false", True),
        ("pager.log", "sh evil", False),
    ],
)
def test_what_a_repository_on_the_other_side_may_have(key: str, value: str, across: bool) -> None:
    try:
        assert may_be_across(entry(key, value)) is across
    except BadConfig:
        assert not across
