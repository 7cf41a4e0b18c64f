package plan

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
)

// A Part is one of several equal shares of the samples, counted from 1: shard 3 of 16. The zero
// Part is all of them.
type Part struct {
	Index int `json:"index"`
	Of    int `json:"of"`
}

// ParsePart reads "3/16".
func ParsePart(s string) (Part, error) {
	var p Part
	var rest string
	if n, _ := fmt.Sscanf(s, "%d/%d%s", &p.Index, &p.Of, &rest); n != 2 || p.Of < 1 || p.Index < 1 || p.Index > p.Of {
		return Part{}, fmt.Errorf("%q is not a shard: write 3/16 for the third of sixteen", s)
	}
	return p, nil
}

// Whole reports whether the part is everything.
func (p Part) Whole() bool { return p.Of <= 1 }

func (p Part) String() string {
	if p.Whole() {
		return "all"
	}
	return fmt.Sprintf("%dof%d", p.Index, p.Of)
}

// Places returns the part's range of places, lo up to but without hi. It consists of whole blocks,
// so that every shard's accumulators see the blocks that an undivided run sees.
func (p Part) Places(l measure.Layout) (lo, hi int) {
	if p.Whole() {
		return 0, l.N
	}
	at := func(i int) int { return min(l.N, i*l.Blocks()/p.Of*l.Block) }
	return at(p.Index - 1), at(p.Index)
}
