package dataset

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestPropertiesOf checks an image of vertical stripes of one pixel, 0 and a grey g, and a red one:
// the Laplacian of the stripes is 2 g on black ones and -2 g on grey ones.
func TestPropertiesOf(t *testing.T) {
	t.Parallel()
	const h, w, grey = 6, 10, 0.4
	stripes, red := tensor.New(1, h, w), tensor.New(3, 4, 9)
	for i := range stripes.Data {
		stripes.Data[i] = float32(i%w%2) * grey
	}
	for i := range 4 * 9 {
		red.Data[i] = 1
	}
	for _, c := range []struct {
		image tensor.Tensor
		want  [4]float64
	}{
		{stripes, [4]float64{255 * grey / 2, 255 * grey / 2, 4 * 255 * 255 * grey * grey, math.Sqrt(h * w)}},
		{red, [4]float64{0.299 * 255, 0, 0, 6}},
		{tensor.New(1, 1, 4), [4]float64{0, 0, 0, 2}},
	} {
		got, err := PropertiesOf(c.image)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range ImageProperties {
			if math.Abs(got[i]-c.want[i]) > 1e-6*max(1, c.want[i]) {
				t.Errorf("%s of shape %v: %v, want %v", name, c.image.Shape, got[i], c.want[i])
			}
		}
	}
	if _, err := PropertiesOf(tensor.New(2, 3, 3)); err == nil {
		t.Error("two channels have properties")
	}
}
