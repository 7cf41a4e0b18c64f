package spec

import (
	"fmt"
	"testing"
)

// TestPairsOfDirectionalMeasures checks that only directional measures compare each pair in both
// orders.
func TestPairsOfDirectionalMeasures(t *testing.T) {
	t.Parallel()
	models := []Model{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, c := range []struct {
		directional bool
		want        string // indices of the models of each pair
	}{{false, "[[0 1] [0 2] [1 2]]"}, {true, "[[0 1] [0 2] [1 0] [1 2] [2 0] [2 1]]"}} {
		m := MeasureSpec{Between: Between{All: true}, Pairs: Pairs{Directional: c.directional}}
		pairs := m.ModelPairs(models)
		if got := fmt.Sprint(pairs); got != c.want || int(m.countPairs(3)) != len(pairs) {
			t.Errorf("directional %v: pairs %s, counted as %v; want %s", c.directional, got, m.countPairs(3), c.want)
		}
	}
}
