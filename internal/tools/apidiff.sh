#!/usr/bin/env bash
# apidiff.sh BASE prints how the exported API of the public packages differs from that of a revision.
set -euo pipefail
cd "$(dirname "$0")/../.."
base=${1:?"name the revision to compare with: make apidiff BASE=v1.0.0"}
module=$(go list -m)
temp=$(mktemp -d)
trap 'git worktree remove --force "$temp/base" 2>/dev/null || true; rm -rf "$temp"' EXIT
git worktree add --quiet --detach "$temp/base" "$base"
go build -modfile=internal/tools/go.mod -o "$temp/apidiff" golang.org/x/exp/cmd/apidiff
quiet() { "$@" 2> >(grep -v "^Ignoring internal" >&2); }
(cd "$temp/base" && quiet "$temp/apidiff" -m -w "$temp/base.export" "$module")
difference=$(quiet "$temp/apidiff" -m "$temp/base.export" "$module" | grep -vE "^- package .*/(cmd|papers)/" || true)
if [ -z "$difference" ]; then
	echo "The API is that of $base."
else
	printf 'The API differs from that of %s.\n\n%s\n' "$base" "$difference"
fi
