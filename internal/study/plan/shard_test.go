package plan

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
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

// TestShardsCoverEveryPositionOnceInWholeBlocks checks the ranges of positions of the shards (the
// parts of a run on several machines) in the order in which samples are read. A measure.Layout
// divides that order into blocks of up to 32 samples.
func TestShardsCoverEveryPositionOnceInWholeBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := measure.NewLayout(rapid.IntRange(1, 5000).Draw(t, "n"))
		count := rapid.IntRange(1, 40).Draw(t, "count")
		next := 0
		for i := 1; i <= count; i++ {
			lo, hi := Shard{Index: i, Count: count}.Positions(l)
			if lo != next || hi < lo || lo != l.N && lo%l.Block != 0 {
				t.Fatalf("shard %d of %d of %+v is %d to %d, want whole blocks from %d", i, count, l, lo, hi, next)
			}
			next = hi
		}
		if next != l.N {
			t.Fatalf("%d shards of %+v end at %d, want %d", count, l, next, l.N)
		}
	})
}
