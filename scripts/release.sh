#!/usr/bin/env bash
# Builds the release: static binaries of the four tools for Linux, macOS and
# Windows on amd64 and arm64, one archive each, and their checksums.
#
#   scripts/release.sh [--check] [--here] VERSION [DIR]
#
# VERSION (v1.2.3) is what --version prints. DIR (default dist) gets
# replaypeer_VERSION_OS_ARCH.tar.gz and SHA256SUMS; it must be new or empty.
# The same commit, Go and VERSION give the same bytes, wherever they are built.
# --check builds everything a second time, from a copy of the source elsewhere
# and with an empty build cache, and fails unless it is the same. --here builds
# for this platform alone, and checks with the cache there is, which is quick.
# What runs here is run once. Needs Go, git, GNU tar.
set -euo pipefail
cd "$(dirname "$0")/.."
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }

check='' cache='' platforms='linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64'
here=$(go env GOOS)/$(go env GOARCH)
while [[ ${1:-} == --* ]]; do
	case $1 in
	--check) check=1 ;;
	--here) platforms=$here cache=$(go env GOCACHE) ;;
	*) usage ;;
	esac
	shift
done
[[ $# -ge 1 && $# -le 2 && $1 == v* ]] || usage
version=$1 out=${2:-dist}
tools='orch-run replay-peer replay-record transcript-lint'
time=$(git log -1 --format=%ct)
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "$(ls -A "$out")" ] || { echo "release: $out is not empty" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/replaypeer-release.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# build PLATFORM DIR: an archive in DIR, of the source in the working directory
build() {
	local name=replaypeer_${version}_${1%/*}_${1#*/} tool exe=''
	[[ $1 != windows/* ]] || exe=.exe
	local stage=$work/stage/$name
	rm -rf "$stage" && mkdir -p "$stage"
	for tool in $tools; do
		CGO_ENABLED=0 GOOS=${1%/*} GOARCH=${1#*/} GOFLAGS=-mod=readonly go build -tags urfave_cli_no_docs -trimpath -buildvcs=false \
			-ldflags "-s -w -buildid= -X github.com/replaypeer/replaypeer/internal/tool.Version=$version" \
			-o "$stage/$tool$exe" "./cmd/$tool"
	done
	cp LICENSE README.md CHANGELOG.md "$stage"
	chmod 755 "$stage" "$stage"/*"$exe" && chmod 644 "$stage"/{LICENSE,README.md,CHANGELOG.md}
	tar --sort=name --format=ustar --mtime="@$time" --owner=0 --group=0 --numeric-owner -C "$work/stage" -cf - "$name" |
		gzip -9n >"$2/$name.tar.gz"
}

# smoke ARCHIVE: what it holds runs, alone, and says its version
smoke() {
	mkdir "$work/smoke"
	tar -xzf "$1" -C "$work/smoke" --strip-components=1
	local tool transcripts=$PWD/transcripts
	(
		cd "$work/smoke"
		for tool in $tools; do
			[ "$(env -i "./$tool" --version)" = "$tool $version" ] || { echo "release: $tool does not say $version" >&2; exit 1; }
			[[ $here != linux/* ]] || ! ldd "$tool" >/dev/null 2>&1 || { echo "release: $tool is not static" >&2; exit 1; }
		done
		PATH=$PWD:$PATH orch-run run --scenario simple
		./transcript-lint check "$transcripts/simple"
		./replay-record check "$transcripts/simple/codex.ndjson"
		./replay-peer link fake codex="$transcripts/simple/codex.ndjson" >/dev/null
		./fake/codex --version
	)
}

for platform in $platforms; do build "$platform" "$out"; done
(cd "$out" && sha256sum replaypeer_*.tar.gz >SHA256SUMS)
[ ! -f "$out/replaypeer_${version}_${here/\//_}.tar.gz" ] || smoke "$out/replaypeer_${version}_${here/\//_}.tar.gz"

if [ -n "$check" ]; then
	mkdir "$work/source" "$work/again"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/source" --
	for platform in $platforms; do
		(cd "$work/source" && GOCACHE=${cache:-$work/cache} build "$platform" "$work/again")
	done
	(cd "$work/again" && sha256sum -c --quiet "$out/SHA256SUMS") || { echo "release: NOT REPRODUCIBLE" >&2; exit 1; }
	echo "built twice, the same bytes"
fi
cat "$out/SHA256SUMS"
