package contactsheet

import (
	"image"
	"image/color"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestTile checks the size of small and of large images.
func TestTile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ h, w, wantH, wantW int }{{16, 24, 64, 96}, {400, 800, 96, 192}, {70, 80, 70, 80}} {
		if got := Tile(tensor.New(3, c.h, c.w), 64, 192).Bounds().Size(); got != image.Pt(c.wantW, c.wantH) {
			t.Errorf("%d x %d: %v, want %d x %d", c.h, c.w, got, c.wantH, c.wantW)
		}
	}
}

// TestBox checks which pixels of a tile a border of two pixels and a name change.
func TestBox(t *testing.T) {
	t.Parallel()
	red := color.NRGBA{255, 0, 0, 255}
	for _, around := range []bool{false, true} {
		tile := Blank(40, 40)
		Box{Left: 0.25, Top: 0.25, Right: 0.5, Bottom: 0.75, Colour: red, Around: around}.Draw(tile)
		box := image.Rect(10, 10, 20, 30)
		if around {
			box = box.Inset(-2)
		}
		for y := range 40 {
			for x := range 40 {
				p := image.Pt(x, y)
				if want := p.In(box) && !p.In(box.Inset(2)); (tile.NRGBAAt(x, y) == red) != want {
					t.Fatalf("around %v: pixel %v is %v", around, p, tile.NRGBAAt(x, y))
				}
			}
		}
	}
	tile := Blank(40, 40)
	Box{Left: 0.9, Top: 0.9, Right: 2, Bottom: 2, Name: "cat", Colour: red}.Draw(tile) // of a label beyond the image
	if tile.NRGBAAt(17, 28) != red {
		t.Errorf("the name of a box at the corner is not moved into the tile: %v", tile.NRGBAAt(17, 28))
	}
}

// TestTint checks that half of the colour of a class is added, and none without one.
func TestTint(t *testing.T) {
	t.Parallel()
	tile := Blank(80, 80)
	Tint(tile, []float32{-1, 1, -1, 1}, 2, 2, func(int) string { return "" })
	c := ClassColour(1)
	if got, want := tile.NRGBAAt(60, 70), (color.NRGBA{uint8((255 + int(c.R)) / 2), uint8((255 + int(c.G)) / 2), uint8((255 + int(c.B)) / 2), 255}); got != want {
		t.Errorf("a class: %v, want %v", got, want)
	}
	if got := tile.NRGBAAt(20, 70); got != (color.NRGBA{255, 255, 255, 255}) {
		t.Errorf("no class: %v", got)
	}
}
