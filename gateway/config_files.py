"""The settings of what people send besides text: how much is taken, and who writes speech down."""

from pydantic import Field, SecretStr

from gateway.config_section import Section

OPENAI_URL = "https://api.openai.com/v1"


class Attachments(Section):
    """`[attachments]`: the files that people send. What is over a limit is named in the reply."""

    file_mb: float = Field(
        20.0, gt=0, le=200, description="Megabytes of one file; Telegram gives bots no more."
    )
    message_files: int = Field(10, ge=0, le=100, description="Files of one message; 0 takes none.")
    message_mb: float = Field(
        50.0, gt=0, le=500, description="Megabytes of the files of one message together."
    )
    session_mb: float = Field(
        1000.0, gt=0, description="Megabytes of files that one session keeps in the workspace."
    )
    shown: int = Field(
        20,
        ge=0,
        le=100,
        description="Pictures and PDFs, the newest, that a request carries; older ones are named.",
    )
    timeout_s: float = Field(
        120.0, gt=0, description="How long fetching the files of one message may take."
    )


class Transcription(Section):
    """`[transcription]`: voice messages and recordings as text, by a server that speaks OpenAI's
    `/audio/transcriptions`. Without a model they are kept and described."""

    model: str | None = Field(None, min_length=1, description="Such as `whisper-1`; unset: none.")
    url: str = Field(
        OPENAI_URL, pattern=r"^https?://", description="The server's base address, with `/v1`."
    )
    key: SecretStr | None = Field(
        None, description="Unset: `models.openai_api_key`, for OpenAI's own server only."
    )
    timeout_s: float = Field(60.0, gt=0, description="The longest that one recording may take.")
