package seed

import (
	"fmt"
	"testing"
)

// TestRandIsPinned checks that the draws of a key do not change between versions of Noether, since
// scores depend on them. A key is a seed and the names and numbers that tell what is drawn, such as
// the data, the sample, the transformation and the trial (the repetition of all draws). The values
// are those of version 0.1.0.
func TestRandIsPinned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seed uint64
		key  []any
		want [2]uint64
	}{
		{1, nil, [2]uint64{0xd724b410a47ce8c2, 0x40a324d415220eb0}},
		{1, []any{"photos", 7, "tilt", 0}, [2]uint64{0x5636f7a7d1075b6f, 0x9dbe7bf69108229b}},
		{2, []any{"photos", 7, "tilt", 0}, [2]uint64{0xa12e386b5fc0af1a, 0xcfac3fba1139b0e5}},
		{1, []any{"3"}, [2]uint64{0x7f342dab84f7e6b, 0x8f870bb15844c9d8}},
		{1, []any{3}, [2]uint64{0x1c7d425d9340ed04, 0x536dfda83d76751c}},
		{1 << 63, []any{"ab", "c"}, [2]uint64{0xc9dcfd62dbcb289f, 0xab07a7bd3d43d321}},
		{1 << 63, []any{"a", "bc"}, [2]uint64{0x3933ebb81532be1c, 0xbb0f8e6eda02a6e1}},
	} {
		r := Rand(c.seed, c.key...)
		if got := [2]uint64{r.Uint64(), r.Uint64()}; got != c.want {
			t.Errorf("Rand(%d, %v) draws %#x, want %#x", c.seed, c.key, got, c.want)
		}
	}
}

// TestMethodsArePinned fails with a version of Go in which methods of rand.Rand draw other numbers,
// which would change scores. Go guarantees the values of a source (rand.PCG), but not those of the
// methods.
func TestMethodsArePinned(t *testing.T) {
	t.Parallel()
	r := Rand(1, "methods")
	got := fmt.Sprint(r.IntN(1000), r.Float64(), r.NormFloat64(), r.ExpFloat64(), r.Perm(8))
	if want := "603 0.17034342555276183 -0.14039357567748845 1.8479112491438854 [4 3 7 5 6 1 2 0]"; got != want {
		t.Errorf("draws are %s, want %s", got, want)
	}
}

// TestRandPanicsOnOtherTypes checks that a part of a key must be a string or an integer.
func TestRandPanicsOnOtherTypes(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a key with a float64 is accepted")
		}
	}()
	Rand(1, 0.5)
}
