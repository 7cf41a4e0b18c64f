package measure

import (
	"encoding/json"
	"testing"
)

// TestRangeJSON checks that the JSON of a range of scores has its two ends, null where it has no
// bound.
func TestRangeJSON(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		r    Range
		text string
	}{
		{ZeroToOne, "[0,1]"}, {MinusOneToOne, "[-1,1]"}, {NotNegative, "[0,null]"}, {AtMostOne, "[null,1]"}, {AnyNumber, "[null,null]"},
	} {
		text, err := json.Marshal(test.r)
		if err != nil || string(text) != test.text {
			t.Errorf("Marshal(%v) = %s, %v, want %s", test.r, text, err, test.text)
		}
		var back Range
		if err := json.Unmarshal(text, &back); err != nil || back != test.r {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", text, back, err, test.r)
		}
	}
	if err := json.Unmarshal([]byte("[1]"), new(Range)); err == nil {
		t.Error("Unmarshal accepts a range of one bound")
	}
}

// TestDescriptorDirectional checks Directional for given statistics, the kinds of score of a
// measure, and for all of them. A statistic is directional if the score of layers (a, b) differs
// from that of (b, a).
func TestDescriptorDirectional(t *testing.T) {
	t.Parallel()
	d := Descriptor{Statistics: []StatisticDescriptor{{Name: "cka"}, {Name: "pwcca", Directional: true}}}
	if !d.Directional() || !d.Directional("cka", "pwcca") || d.Directional("cka") || d.Directional("unknown") {
		t.Error("Directional does not report whether any of the named statistics is directional")
	}
}
