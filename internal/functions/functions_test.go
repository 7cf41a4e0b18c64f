package functions

import (
	"slices"
	"strings"
	"testing"
)

func TestWholeBytes(t *testing.T) {
	t.Parallel()
	values, want := make([]float32, 256), make([]uint8, 256)
	for i := range values {
		values[i], want[i] = float32(i)/255, uint8(i)
	}
	if got, err := wholeBytes(values); err != nil || !slices.Equal(got, want) {
		t.Errorf("values k / 255 as bytes: %v, %v", got, err)
	}
	for _, v := range []float32{-0.1, 1.5, 0.5, 1e30} {
		if _, err := wholeBytes([]float32{v}); err == nil || !strings.Contains(err.Error(), "no multiple of 1/255") {
			t.Errorf("%g: error %v", v, err)
		}
	}
}
