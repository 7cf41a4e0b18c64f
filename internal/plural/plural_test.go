package plural

import "testing"

func TestOf(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 samples", 1: "1 sample", 2: "2 samples", 1000: "1000 samples"} {
		if got := Of(n, "sample"); got != want {
			t.Errorf("Of(%d, \"sample\") = %q, want %q", n, got, want)
		}
	}
}
