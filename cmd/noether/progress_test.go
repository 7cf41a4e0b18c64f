package main

import (
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
)

// TestProgressLine checks that the line has the number of samples of the data, and the percentage
// of forward passes, of which a sample needs several (Done and Total count them). The rate is that
// of the forward passes of this process, the second argument, here in 12 s. It is left out until
// there are 2 % of them.
func TestProgressLine(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]study.Progress{
		"net on photos: 24 of 40 samples, 60 % of the forward passes, 12/s, 8s left":               {Model: "net", Data: "photos", Done: 144, Total: 240, Pass: 1, Passes: 1, Samples: 24, AllSamples: 40},
		"net on photos, pass 2 of 3: 24 of 40 samples, 50 % of the forward passes, 10/s, 12s left": {Model: "net", Data: "photos", Done: 120, Total: 240, Pass: 2, Passes: 3, Samples: 24, AllSamples: 40},
		"net on photos: 7 of 75 layers scored":                                                     {Model: "net", Data: "photos", Done: 240, Total: 240, Pass: 1, Passes: 1, Samples: 40, AllSamples: 40, Scored: 7, ToScore: 75},
		"net on photos, distance 0.5, 50 %, 10/s, 12s left":                                        {Model: "net", Data: "photos", Done: 120, Total: 240, Pass: 1, Passes: 1, Note: "distance 0.5"},
	} {
		if got := progressLine(p, p.Done, 12*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	early := study.Progress{Model: "net", Data: "photos", Done: 2, Total: 240, Samples: 1, AllSamples: 40}
	if got, want := progressLine(early, 1, 12*time.Second), "net on photos: 1 of 40 samples, 1 % of the forward passes"; got != want {
		t.Errorf("after the first batch %q, want %q", got, want)
	}
	resumed := study.Progress{Model: "net", Data: "photos", Done: 144, Total: 240, Samples: 24, AllSamples: 40}
	if got, want := progressLine(resumed, 24, 12*time.Second), "net on photos: 24 of 40 samples, 60 % of the forward passes, 2/s, 48s left"; got != want {
		t.Errorf("a resumed run: %q, want %q", got, want)
	}
}
