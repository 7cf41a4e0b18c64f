package plan

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
)

// A Shard is one of Count parts of the samples, of whole blocks. The parts differ by at most one
// block, and may be empty. Index counts from 1; the zero Shard is all samples.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"of"`
}

// ParseShard parses a shard such as "3/16".
func ParseShard(text string) (Shard, error) {
	var s Shard
	var rest string
	if n, _ := fmt.Sscanf(text, "%d/%d%s", &s.Index, &s.Count, &rest); n != 2 || s.Index < 1 || s.Index > s.Count || s.Count > maxShards {
		return Shard{}, fmt.Errorf("%q is not a shard: write 3/16 for the third of sixteen", text)
	}
	return s, nil
}

// maxShards keeps Index times the number of blocks within an int.
const maxShards = 1_000_000_000

// Whole reports whether the shard is all samples.
func (s Shard) Whole() bool { return s.Count <= 1 }

// String returns the shard as used in file names, such as "3of16", or "all".
func (s Shard) String() string {
	if s.Whole() {
		return "all"
	}
	return fmt.Sprintf("%dof%d", s.Index, s.Count)
}

// Positions returns the shard's range [lo, hi) in the random order. It consists of whole blocks, so
// that shards process the blocks of an undivided run; it may be empty.
func (s Shard) Positions(l measure.Layout) (lo, hi int) {
	if s.Whole() {
		return 0, l.N
	}
	at := func(i int) int { return min(l.N, i*l.Blocks()/s.Count*l.Block) }
	return at(s.Index - 1), at(s.Index)
}
