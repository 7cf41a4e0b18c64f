package transform_test

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/noether-ml/noether/transform"
)

// TestDescribeRandom checks the text for the random values of a transformation. Fixed parameters
// are listed only beside random ones.
func TestDescribeRandom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind string
		args transform.Args
		want string // pattern
	}{
		{"rotate", transform.Args{"angle": transform.Uniform(10, 11)}, `^10\.\d{1,2}$`},
		{"rotate", transform.Args{"angle": transform.Fixed(15)}, `^$`}, // no random value
		{"affine", transform.Args{"rotate": transform.Uniform(5, 6), "scale": transform.Fixed(2)}, `^rotate 5\.\d{1,3}, scale 2$`},
		{"grayscale", nil, `^$`}, // no parameter
	} {
		kind, _ := transform.Lookup(c.kind)
		tr, err := kind.Make(c.args)
		if err != nil {
			t.Fatal(c.kind, err)
		}
		if got := transform.DescribeRandom(tr, tr.Draw(rand.New(rand.NewPCG(3, 0)))); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("DescribeRandom of %s = %q, want a match of %s", c.kind, got, c.want)
		}
	}
}
