package spelling

import "testing"

// TestDistance checks the Levenshtein distance of a and b, and of a and the substring of b that is
// nearest to it.
func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b                string
		distance, substring int
	}{
		{"", "", 0, 0},
		{"a", "", 1, 1},
		{"", "abc", 3, 0},
		{"kitten", "sitting", 3, 2},
		{"abc", "", 3, 3},
		{"relu", "relu", 0, 0},
		{"layer1", "/net/layer1/conv", 10, 0},
		{"limt", "limit", 1, 1},
		{"conv", "layer1/conv2", 8, 0},
	} {
		if d := Distance(c.a, c.b); d != c.distance {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, d, c.distance)
		}
		if d := substringDistance(c.a, c.b); d != c.substring {
			t.Errorf("substringDistance(%q, %q) = %d, want %d", c.a, c.b, d, c.substring)
		}
	}
}

// TestNearest checks that the word that is meant comes first, whatever its case. The last argument
// of Nearest is the largest number of words to return.
func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"logits", "hidden", "layer1/Conv", "layer1/Conv_bias", "hidden", "pixels"}
	for word, want := range map[string]string{"logit": "logits", "LAYER1/CONV": "layer1/Conv", "hiden": "hidden", "pixel": "pixels"} {
		if near := Nearest(word, names, 2); len(near) != 2 || near[0] != want {
			t.Errorf("Nearest(%q) = %q, want %q first", word, near, want)
		}
	}
	if near := Nearest("x", nil, 3); len(near) != 0 {
		t.Errorf("Nearest among no words = %q, want none", near)
	}
	if near := Nearest("h", names, 10); len(near) != 5 {
		t.Errorf("Nearest = %q, want five distinct words", near)
	}
}
