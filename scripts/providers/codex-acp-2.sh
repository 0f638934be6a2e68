# codex-acp asked for the draft of protocol version 2, which it negotiates. Sourced
# by scripts/record.sh.

# shellcheck source=codex-acp.sh
source "$(dirname "${BASH_SOURCE[0]}")/codex-acp.sh"
families=(codex-acp "${families[@]}")
unset -f provider_driver # the plain client speaks version 1
