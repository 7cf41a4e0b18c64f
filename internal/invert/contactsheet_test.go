package invert_test

import (
	"image/color"
	"testing"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/tensor"
)

// TestContactSheet checks the image that shows pairs of images x and y side by side, one pair below
// the other.
func TestContactSheet(t *testing.T) {
	t.Parallel()
	x, y := tensor.New(3, 3, 2, 2), tensor.New(3, 3, 2, 2)
	for i := range 4 { // the second pair: red and blue
		x.At(1).Data[i] = 1
		y.At(1).Data[8+i] = 2 // above 1: clipped
	}
	s := invert.ContactSheet(x, y)
	// Images of 2 x 2 are enlarged to 96 x 96. A pair is 2 * 96 + 2 wide, with a margin of 10.
	if b := s.Bounds(); b.Dx() != 10+204 || b.Dy() != 10+3*106 {
		t.Fatalf("bounds = %v, want %d x %d", b, 10+204, 10+3*106)
	}
	white, black := color.NRGBA{255, 255, 255, 255}, color.NRGBA{0, 0, 0, 255}
	red, blue := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 0, 255, 255}
	for _, p := range []struct {
		x, y int
		want color.NRGBA
	}{
		{0, 0, white},     // margin
		{10, 10, black},   // x of the first pair, top left
		{10, 116, red},    // x of the second pair, top left
		{105, 211, red},   // x of the second pair, bottom right
		{106, 150, white}, // gap between the images of the second pair
		{108, 116, blue},  // y of the second pair, top left
		{203, 211, blue},  // y of the second pair, bottom right
	} {
		if got := s.NRGBAAt(p.x, p.y); got != p.want {
			t.Errorf("pixel %d, %d = %v, want %v", p.x, p.y, got, p.want)
		}
	}
	// Nine pairs are in two columns, of five and of four. Images of 224 x 224 keep their size.
	if b := invert.ContactSheet(tensor.New(9, 1, 224, 224), tensor.New(9, 1, 224, 224)).Bounds(); b.Dx() != 10+2*460 || b.Dy() != 10+5*234 {
		t.Errorf("bounds for nine pairs of images of side 224 = %v, want %d x %d", b, 10+2*460, 10+5*234)
	}
}
