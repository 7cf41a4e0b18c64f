package figure

import (
	"slices"
	"testing"

	"gonum.org/v1/plot/vg"
)

// Names of layers that are alike at both ends stay apart in little room.
func TestFitAllKeepsNamesApart(t *testing.T) {
	t.Parallel()
	s := newStyle(Options{})
	names := []string{"/layer1/layer1.0/Relu_1", "/layer1/layer1.2/Relu_1", "/layer3/layer3.1/Relu_1"}
	if got := s.fitAll(s.small, names, 60*vg.Millimeter); !slices.Equal(got, names) {
		t.Errorf("with room for all: %q", got)
	}
	got := s.fitAll(s.small, names, 15*vg.Millimeter)
	if !slices.Equal(got, []string{"1/layer1.0", "1/layer1.2", "3/layer3.1"}) {
		t.Errorf("%q", got)
	}
	for _, names := range [][]string{nil, {"one"}, {"a", "a"}, {"aa", "a"}, {"ab", "b"}} {
		if got := trimCommon(names); len(got) != len(names) || slices.Contains(got, "") {
			t.Errorf("%q became %q", names, got)
		}
	}
}
