#!/usr/bin/env bash
# Lets acpx have a scenario's first turn with an agent in the working directory:
#   acpx.sh NODE ACPX SCENARIO AGENT
# More turns would be more processes of the agent.
set -euo pipefail
node=$1 acpx=$2 scenario=$3 agent=$4
prompt=$("$node" --input-type=module -e 'import(process.argv[1]).then(({ prompts }) => console.log(prompts(process.argv[2])[0]), 0)' \
	"$(dirname "${BASH_SOURCE[0]}")/prompts.mjs" "$scenario")
exec "$node" "$acpx" --cwd "$PWD" --agent "$agent" --approve-all exec "$prompt"
