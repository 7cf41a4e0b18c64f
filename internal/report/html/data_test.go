package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// soundRun is a run on audio: it has samples without images, and a parameter in dB. FakeRun
// generates the scores of a run, and withSamples adds the predictions for some samples.
func soundRun() Run {
	f := reporttest.FakeRun{Models: 2, Layers: 4, Transforms: 2, NameOf: namesOf(map[string][]string{"model": {"crnn", "transformer"}, "data": {"speech"}, "transform": {"noise", "reverb"}})}
	rows, rec := f.Rows()
	rec.Data[0].Kind = "sound"
	rec.Transforms = []scores.TransformRecord{{Name: "noise", Parameter: "snr (dB)"}, {Name: "reverb"}}
	return withSamples(Run{Rows: rows, Record: rec}, f, false)
}

// namesOf returns a function for FakeRun.NameOf with the given names of some kinds (model, data,
// layer, ...). The other names are the ordinary ones.
func namesOf(names map[string][]string) func(kind string, i int) string {
	return func(kind string, i int) string {
		if of := names[kind]; i < len(of) {
			return of[i]
		}
		return reporttest.FakeRun{}.Name(kind, i)
	}
}

// longNames is a run whose names are all too long for any screen. Each has a part without spaces
// and a part with spaces. withNetworks adds the graphs of the models.
func longNames() Run {
	f := reporttest.FakeRun{Models: 3, Layers: 4, Transforms: 3, Data: 2, Classes: 2, NameOf: func(kind string, i int) string {
		return strings.Repeat(kind, 30) + strings.Repeat(" "+kind, 10) + fmt.Sprint(i)
	}}
	rows, rec := f.Rows()
	return withNetworks(withSamples(Run{Rows: rows, Record: rec}, f, true), f)
}

// TestRunsOfOtherData opens the reports of runs on sound and on video, and of one with long names,
// in windows as wide as on a desktop and on a phone. firingRun returns a run with firing rates of
// single units at two layers. No run has contact sheets, images that show samples side by side.
// quiet checks that the browser reported no problem and that the page requested no other file.
func TestRunsOfOtherData(t *testing.T) {
	t.Parallel()
	clips := firingRun(t, scores.LayerRecord{Name: "first", Depth: 1}, scores.LayerRecord{Name: "second", Depth: 2})
	clips.Record.Data = []scores.DataRecord{{Name: "clips", Kind: "video", N: 40}}
	for name, run := range map[string]Run{"sound": soundRun(), "video": clips, "long names": longNames()} {
		for _, width := range []int64{1440, 390} {
			t.Run(fmt.Sprintf("%s, %d", name, width), func(t *testing.T) {
				v := openAt(t, run, width, 844, "")
				if wide := evaluate[int64](t, v, "document.documentElement.scrollWidth"); wide > width {
					t.Errorf("the page is %d pixels wide, want at most those of the window, %d", wide, width)
				}
				if n := evaluate[int](t, v, `document.querySelectorAll("main figure .chart svg").length`); n == 0 {
					t.Error("no chart is drawn")
				}
				if n := evaluate[int](t, v, `document.querySelectorAll(".strip canvas").length`); n != 0 {
					t.Errorf("%d images of a run without contact sheets, want none", n)
				}
				if name == "sound" {
					if got, want := v.texts(t, ".go"), []string{"Show samples that fail under noise"}; !slices.Equal(got, want) {
						t.Errorf("the link says %q, want %q", got, want)
					}
					if got := v.texts(t, "#samples .slider span"); !slices.Equal(got, []string{"snr (dB)"}) {
						t.Errorf("the slider is of %q, want %q", got, "snr (dB)")
					}
				}
				v.quiet(t)
			})
		}
	}
}
