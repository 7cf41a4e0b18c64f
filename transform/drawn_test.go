package transform_test

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/noether-ml/noether/transform"
)

func TestDrawn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind string
		args transform.Args
		want string // pattern
	}{
		{"rotate", transform.Args{"angle": transform.Uniform(10, 11)}, `^10\.\d{1,2}$`},
		{"rotate", transform.Args{"angle": transform.Fixed(15)}, `^$`},
		{"affine", transform.Args{"rotate": transform.Uniform(5, 6), "scale": transform.Fixed(2)}, `^rotate 5\.\d{1,3}, scale 2$`},
		{"grayscale", nil, `^$`},
	} {
		kind, _ := transform.Lookup(c.kind)
		law, err := kind.Make(c.args)
		if err != nil {
			t.Fatal(c.kind, err)
		}
		if got := transform.Drawn(law, law.Draw(rand.New(rand.NewPCG(3, 0)))); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q does not match %s", c.kind, got, c.want)
		}
	}
}
