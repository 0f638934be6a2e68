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

# node_24 is a Node for packages that want a newer one than the machine has.
node_24=node-24/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')/bin/node

node_24_install() {
	npm_cached node-24 "node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')@24"
}
