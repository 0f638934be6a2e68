# claude-acp asked for the draft of protocol version 2, which it negotiates. Sourced
# by scripts/record.sh.

# shellcheck source=claude-acp.sh
source "$(dirname "${BASH_SOURCE[0]}")/claude-acp.sh"
families=(claude-acp "${families[@]}")
unset -f provider_driver # the plain client speaks version 1
