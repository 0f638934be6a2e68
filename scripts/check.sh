#!/usr/bin/env bash
# staticcheck and govulncheck, pinned, and in no go.mod. The one must be clean.
# The other needs the vulnerability database, and says loudly where it did not
# run for want of it.
set -euo pipefail
cd "$(dirname "$0")/.."
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0

not_run() { printf '\n!! %s DID NOT RUN: %s\n\n' "$1" "$2"; }

# fetched says whether a tool can be built here; a build error says why not.
fetched() { GOFLAGS='' go run "$1" "$2" 2>&1 >/dev/null; }

if why=$(fetched "$staticcheck" --version); then
	GOFLAGS='' go run "$staticcheck" ./...
	echo "staticcheck: clean"
else
	not_run STATICCHECK "$(tail -n 1 <<<"$why")"
fi

if ! why=$(fetched "$govulncheck" -version); then
	not_run GOVULNCHECK "$(tail -n 1 <<<"$why")"
elif out=$(GOFLAGS='' go run "$govulncheck" ./... 2>&1); then
	printf '%s\n' "$out"
elif [[ $out == *'fetching vulnerabilities'* ]]; then
	not_run GOVULNCHECK "$(grep 'fetching vulnerabilities' <<<"$out")"
else
	printf '%s\n' "$out"
	exit 1
fi
