#!/usr/bin/env bash
# Runs all tests and prints the statement coverage of each package of pkg/ and
# internal/: scripts/cover.sh [GO TEST FLAGS…]. What child processes execute
# counts, since most tests go through the binaries: they are built with
# counters, too, and leave them in one folder.
#
# Fails where a test fails, or where a package is below the floor without a
# line "Coverage: WHY" in its package comment.
set -euo pipefail
cd "$(dirname "$0")/.."
floor=80
module=$(go list -m)

dir=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer-cover.XXXXXX")
trap 'rm -rf "$dir"' EXIT
# A program counts only where its main package is counted.
export GOFLAGS="${GOFLAGS:-} -cover -covermode=atomic -coverpkg=$module/pkg/...,$module/internal/...,$module/cmd/..."
# go test sends what children count to a folder that it removes, hence -exec.
# The percentages it prints are of each test binary alone, and would mislead.
go test -timeout 20m -exec "env GOCOVERDIR=$dir" "$@" ./... -args -test.gocoverdir="$dir" | sed -u 's/\tcoverage: .*//' | sed -u '/^\t/d'

unset GOFLAGS
go tool covdata percent -i="$dir" | sed -n "s|^\t*$module/\([pi]\)|\1|p" | sed 's/\t*coverage: / /; s/ of statements.*//' | sort >"$dir/percent"
[ -s "$dir/percent" ] || { echo "no package was measured" >&2; exit 1; }
bad=0
while read -r package percent; do
	value=${percent%\%}
	why=
	if [ "${value%.*}" -lt "$floor" ]; then
		why=$(sed -n 's|^// Coverage: ||p' "$package"/*.go)
		[ -n "$why" ] || { why="BELOW $floor % WITHOUT A REASON IN ITS PACKAGE COMMENT"; bad=1; }
	fi
	printf '%7s  %-28s %s\n' "$percent" "$package" "$why"
done <"$dir/percent"
exit $bad
