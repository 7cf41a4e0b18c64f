package figure

import (
	"slices"
	"testing"

	"gonum.org/v1/plot/vg"
)

// TestFitAllKeepsNamesDistinct checks that names of layers with a common prefix and suffix remain
// distinct when they are shortened to a width. fitAll tries moduleNames, which keeps one of the
// parts between slashes, and then trimCommon, which removes the common prefix and suffix.
func TestFitAllKeepsNamesDistinct(t *testing.T) {
	t.Parallel()
	s := newStyle(Options{})
	names := []string{"/layer1/layer1.0/Relu_1", "/layer1/layer1.2/Relu_1", "/layer3/layer3.1/Relu_1"}
	if got := s.fitAll(s.small, names, 60*vg.Millimeter); !slices.Equal(got, names) {
		t.Errorf("in enough width the names are %q, want %q", got, names)
	}
	got := s.fitAll(s.small, names, 15*vg.Millimeter)
	if !slices.Equal(got, []string{"layer1.0", "layer1.2", "layer3.1"}) {
		t.Errorf("in 15 mm the names are %q, want layer1.0, layer1.2 and layer3.1", got)
	}
	if got := s.fitAll(s.small, []string{"/stage1/block/conv/a_long_name_1", "/stage1/block/conv/a_long_name_2", "/stage2/block/conv/a_long_name_1"}, 15*vg.Millimeter); countDistinct(got) != 3 {
		t.Errorf("names that do not differ in any one part between slashes are shortened to %q, want distinct names", got)
	}
	for _, names := range [][]string{nil, {"a/x", "x"}, {"/x", "/x"}} {
		if got := moduleNames(names); len(got) != len(names) || slices.Contains(got, "") {
			t.Errorf("moduleNames(%q) = %q, want as many names, none empty", names, got)
		}
	}
	for _, names := range [][]string{nil, {"one"}, {"a", "a"}, {"aa", "a"}, {"ab", "b"}} {
		if got := trimCommon(names); len(got) != len(names) || slices.Contains(got, "") {
			t.Errorf("trimCommon(%q) = %q, want as many names, none empty", names, got)
		}
	}
}
