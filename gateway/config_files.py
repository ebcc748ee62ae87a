"""The settings of what people send besides text: how much is taken, and who writes speech down."""

from pydantic import Field

from gateway.config_section import Section
from gateway.config_text import Address, Credential

OPENAI_URL = "https://api.openai.com/v1"


class Attachments(Section):
    """`[attachments]`: limits of the files that people send. A reply names what is over a limit."""

    file_mb: float = Field(
        20.0,
        gt=0,
        le=200,
        description="Size of one file, in MB. Telegram gives bots no more than 20.",
    )
    message_files: int = Field(10, ge=0, le=100, description="Files of one message. 0 takes none.")
    message_mb: float = Field(
        50.0, gt=0, le=500, description="Size of all files of one message together, in MB."
    )
    session_mb: float = Field(
        1000.0,
        gt=0,
        description="Size of all files that one session keeps in the workspace, in MB.",
    )
    assets_mb: float = Field(
        1000.0,
        gt=0,
        description="Size of all files together that one token uploads to `/v1/assets`, in MB.",
    )
    shown: int = Field(
        20,
        ge=0,
        le=100,
        description="How many of the newest pictures and PDFs a request to the model carries. "
        "Older ones are only named.",
    )
    timeout_s: float = Field(
        120.0, gt=0, description="Seconds that the download of the files of one message may take."
    )


class Transcription(Section):
    """`[transcription]`: turns voice messages and recordings into text, with a server that offers
    OpenAI's `/audio/transcriptions`. Without a model, they are kept and described."""

    model: str | None = Field(
        None, min_length=1, description="The model, such as `whisper-1`. Unset: no transcription."
    )
    url: Address = Field(OPENAI_URL, description="The base address of the server, with `/v1`.")
    key: Credential | None = Field(
        None,
        description="The key for the server. Unset: `models.openai_api_key`, but only for "
        "OpenAI's own server.",
    )
    timeout_s: float = Field(60.0, gt=0, description="Seconds that one recording may take.")
