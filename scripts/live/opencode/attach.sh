#!/usr/bin/env bash
# Runs the real `opencode run` against the fake one:
#   attach.sh REAL FAKE MESSAGE
# Exit code: the fake's, which tells the verdict.
set -euo pipefail
real=$1 fake=$2 message=$3
exec 3< <(exec "$fake" serve --hostname=127.0.0.1 --port=0)
peer=$!
read -r line <&3
OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_LSP_DOWNLOAD=1 \
	timeout 60 "$real" run --attach "${line##* }" --format json "$message" </dev/null || echo "opencode run: exit code $?" >&2
kill "$peer" 2>/dev/null || true # it has ended by itself when the replay failed
wait "$peer"
