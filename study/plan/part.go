package plan

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
)

// A Part is one of several equal shares (shards) of the samples, counted from 1, such as shard 3 of
// 16. The zero Part is all samples.
type Part struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// ParsePart parses a part such as "3/16".
func ParsePart(s string) (Part, error) {
	var p Part
	var rest string
	if n, _ := fmt.Sscanf(s, "%d/%d%s", &p.Index, &p.Of, &rest); n != 2 || p.Of < 1 || p.Index < 1 || p.Index > p.Of {
		return Part{}, fmt.Errorf("%q is not a shard: write 3/16 for the third of sixteen", s)
	}
	return p, nil
}

// Whole reports whether the part is all samples.
func (p Part) Whole() bool { return p.Of <= 1 }

// String returns the part as it stands in file names, such as "3of16", or "all".
func (p Part) String() string {
	if p.Whole() {
		return "all"
	}
	return fmt.Sprintf("%dof%d", p.Index, p.Of)
}

// Places returns the half-open range [lo, hi) of the part's places. It consists of whole blocks, so
// that the accumulators of every shard see the same blocks as an undivided run.
func (p Part) Places(l measure.Layout) (lo, hi int) {
	if p.Whole() {
		return 0, l.N
	}
	at := func(i int) int { return min(l.N, i*l.Blocks()/p.Of*l.Block) }
	return at(p.Index - 1), at(p.Index)
}
