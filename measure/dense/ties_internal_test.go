package dense

import (
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/transform"
)

// TestTies checks, against whole numbers, which rows of a class map a scale of 1.3 reads: the nearest
// ones, and of two that are equally near the upper one. The page says how many rows are such ties.
func TestTies(t *testing.T) {
	t.Parallel()
	kind, ok := transform.Lookup("scale")
	if !ok {
		t.Fatal("there is no scale")
	}
	scale, err := kind.Make(transform.Args{"factor": transform.Fixed(1.3)})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int{16: 2, 224: 18} {
		p, ok := scale.Draw(nil).(interface {
			PointMap(h, w int) (measure.PointMap, bool)
		}).PointMap(n, n)
		if !ok {
			t.Fatal("scale does not say how it moves positions")
		}
		a := &mapAction{format: &decoded.Format{Height: n, Width: n}}
		a.findSources(p)
		ties := 0
		for row := range n {
			// The source of a row is a number of 26ths: (n - 1)/2 + (row - (n - 1)/2) 10/13.
			source := 13*(n-1) + 10*(2*row-n+1)
			nearest := (source + 12) / 26 // of a tie the upper one
			if (source-13)%26 == 0 {
				ties++
			}
			if got := int(a.sources[row*n]) / n; got != nearest {
				t.Errorf("row %d of %d reads row %d, want %d, as its source is %d/26", row, n, got, nearest, source)
			}
		}
		if ties != want {
			t.Errorf("%d of %d rows are ties, and the page says %d", ties, n, want)
		}
	}
}
