package invert_test

import (
	"image/color"
	"testing"

	"github.com/noether-ml/noether/invert"
	"github.com/noether-ml/noether/tensor"
)

func TestSheet(t *testing.T) {
	t.Parallel()
	x, y := tensor.New(3, 3, 2, 2), tensor.New(3, 3, 2, 2)
	for i := range 4 { // the second pair: red and blue
		x.At(1).Data[i] = 1
		y.At(1).Data[8+i] = 2 // above 1: clipped
	}
	s := invert.Sheet(x, y)
	// Images of 2 x 2 are enlarged to 96 x 96. A pair is 2 * 96 + 2 wide, with a margin of 10.
	if b := s.Bounds(); b.Dx() != 10+204 || b.Dy() != 10+3*106 {
		t.Fatalf("the bounds are %v", b)
	}
	red, blue := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 0, 255, 255}
	for _, p := range []struct {
		x, y int
		want color.NRGBA
	}{{0, 0, color.NRGBA{255, 255, 255, 255}}, {10, 10, color.NRGBA{0, 0, 0, 255}}, {10, 116, red}, {105, 211, red}, {106, 150, color.NRGBA{255, 255, 255, 255}}, {108, 116, blue}, {203, 211, blue}} {
		if got := s.NRGBAAt(p.x, p.y); got != p.want {
			t.Errorf("pixel %d, %d is %v, want %v", p.x, p.y, got, p.want)
		}
	}
	if b := invert.Sheet(tensor.New(9, 1, 224, 224), tensor.New(9, 1, 224, 224)).Bounds(); b.Dx() != 10+2*460 || b.Dy() != 10+5*234 {
		t.Errorf("the bounds for nine images of side 224 are %v", b)
	}
}
