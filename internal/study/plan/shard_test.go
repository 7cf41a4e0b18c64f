package plan

import (
	"testing"
)

// TestParseShard parses shards such as "3/16", the third of 16 parts of the samples. Where the zero
// Shard is wanted, the text is not valid.
func TestParseShard(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Shard{"3/16": {3, 16}, "1/1": {1, 1}, "0/3": {}, "4/3": {}, "1/": {}, "x": {}, "1/2/3": {}, "-1/2": {}, "1/0": {}, "1/2000000000": {}} {
		if got, err := ParseShard(text); got != want || (err != nil) != (want == Shard{}) {
			t.Errorf("%q gives %v, error %v; want %v", text, got, err, want)
		}
	}
}
