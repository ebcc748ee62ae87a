"""${message}"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}
# The oldest revision whose code works with this schema: that of the parent, unless this one takes
# something away (docs/decisions/0018-rolling-upgrades.md).
compatible_from = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
