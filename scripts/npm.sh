# Sourced by the recipes. npm_cached FOLDER PACKAGE@VERSION… puts packages into
# a folder of the cache, unless it is there, and runs nothing of theirs.
# npm skips a platform's package whose engines the running Node does not meet,
# and takes an older one: always name the version.
npm_cached() {
	local dir=$cache/npm/$1
	shift
	[[ -d $dir/node_modules ]] && return
	echo "record: installing $*" >&2
	npm install --prefix "$dir.new" --ignore-scripts --no-audit --no-fund "$@" >&2
	mv "$dir.new" "$dir"
}

# pin VARIABLE PACKAGE VERSION sets a recipe's version: the pinned one, or what
# the variable's name in capitals says, where "latest" is what npm calls so. The
# scripts that run without a network get the answer handed down in pins.
pins=()
pin() {
	local name=${1^^} version
	version=${!name:-$3}
	[[ $version != latest ]] || version=$(npm view "$2" version)
	printf -v "$1" %s "$version"
	pins+=("$name=$version")
}

# node_24 is a Node for packages that want a newer one than the machine has.
node_24=node-24/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')/bin/node

node_24_install() {
	npm_cached node-24 "node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@24"
}
