#!/usr/bin/env bash
# Opens the page of transcript-lint show --html in headless Chromium: it must be
# fast, and search, folding and jumps must work. CHROMIUM names the program;
# Debian's package is installed where there is none and root may. Screenshots
# go to $BROWSER_SCREENSHOTS, or to a temporary folder, whose name is printed.
# Says loudly when it did not run.
set -euo pipefail
cd "$(dirname "$0")/.."

not_run() {
	printf '\n!! THE BROWSER TEST DID NOT RUN: %s\n\n' "$1"
	exit 0
}
[ "$(uname -s)" = Linux ] || not_run "it needs Linux network namespaces"
find_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome || true; }
CHROMIUM=${CHROMIUM:-$(find_browser)}
if [ -z "$CHROMIUM" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "browser: installing chromium" >&2
	log=$(mktemp)
	if ! { timeout 300 apt-get update && timeout 600 apt-get install -y --no-install-recommends chromium; } >"$log" 2>&1; then
		tail -n 5 "$log" >&2
	fi
	rm -f "$log"
	CHROMIUM=$(find_browser)
fi
[ -n "$CHROMIUM" ] || not_run "no Chromium, and it could not be installed: set CHROMIUM"
export CHROMIUM
"$CHROMIUM" --version 2>/dev/null
go test -count=1 -tags browser -run '^TestBrowser$' -v ./cmd/transcript-lint | grep -v '^=== '
