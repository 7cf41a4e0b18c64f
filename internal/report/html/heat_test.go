package html

import (
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"slices"
	"testing"
)

// TestHeatMaps checks that each heat map of similarities has a tile for each pair of the five
// layers, which FakeRun places at the depths 3, 8, 13, 18 and 23. FakeRun generates a run in which
// the first PairedLayers layers of model 0 are compared with each other and with those of model 1.
func TestHeatMaps(t *testing.T) {
	t.Parallel()
	rows, rec := reporttest.FakeRun{Models: 2, Layers: 5, PairedLayers: 5}.Rows()
	v := open(t, rows, rec, 1280, 900)
	if got, want := v.texts(t, "figure figcaption > span:first-child"), []string{"resnet20 with itself", "resnet20 and resnet56"}; !slices.Equal(got, want) {
		t.Errorf("charts of %q, want %q", got, want)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll("main figure .mark-rect.role-mark path").length`); n != 2*5*5 {
		t.Errorf("%d tiles, want %d", n, 2*5*5)
	}
	colours := evaluate[[]string](t, v, `[...document.querySelectorAll("main figure .mark-rect.role-mark path")].slice(0, 25).map(p => p.getAttribute("fill"))`)
	// Tile 0 and tile 6 of the rows of 5 are on the diagonal, tile 4 is a corner beside it.
	if len(colours) != 25 || colours[0] != colours[6] || colours[0] == colours[4] {
		t.Errorf("the tiles are coloured %q, want the diagonal in one colour, and the corner in another", colours)
	}
	if got, want := v.texts(t, "figure:first-child .role-axis-label text"), []string{"3", "8", "13", "18", "23", "23", "18", "13", "8", "3"}; !slices.Equal(got, want) {
		t.Errorf("axes show %q, want %q", got, want)
	}
	if n := evaluate[int](t, v, `document.querySelectorAll(".legend li").length`); n != 0 {
		t.Errorf("%d entries in the legend of lines, of which there are none", n)
	}
	v.quiet(t) // the page reported no problem and loaded nothing else
}
