package config

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"lable": "label", "labels": "label", "ab": "", "ax": "", "dta": "data", "x": "", "tow": "two", "y2": "y", "dato": "data", "quite": ""} {
		if got := Nearest(word, []string{"label", "data", "on", "of", "two", "y"}); got != want {
			t.Errorf("the nearest to %q is %q, want %q", word, got, want)
		}
	}
}
