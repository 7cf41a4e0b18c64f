package study_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/scores"
)

const photosText = `name: photos
data: [{name: photos, images: photos}]
models: [{name: good, onnx: good.onnx, layers: [conv]}, {name: external, onnx: external.onnx, layers: [conv]}]
transforms: [{name: quarter, rotate: {values: [90]}}]
measures: [distance, seis: {interval: false}]
batch: 2
`

// writePhotos writes sixteen images of 16 x 16 pixels into the folder photos of a folder, the model
// good, and the model external, whose weights are in the file weights.
func writePhotos(t testing.TB, dir string) {
	t.Helper()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	externalWeights(t, testmodel.Write(t, dir, "external", testmodel.Options{}), filepath.Join(dir, "weights"))
	if err := os.MkdirAll(filepath.Join(dir, "photos"), 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 16 {
		write(t, photo(dir, i), photoOf(t, i))
	}
}

func photo(dir string, i int) string { return filepath.Join(dir, "photos", fmt.Sprintf("%02d.png", i)) }

// photoOf returns a PNG file whose pixels depend on a number.
func photoOf(t testing.TB, n int) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 16, 16))
	for p := range img.Pix {
		img.Pix[p] = byte(p*(n+1)) | byte(n)
	}
	var coded bytes.Buffer
	if err := png.Encode(&coded, img); err != nil {
		t.Fatal(err)
	}
	return coded.Bytes()
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// externalWeights moves the weights of a model's file into another one.
func externalWeights(t testing.TB, path, weights string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	m := &pb.ModelProto{}
	if err == nil {
		err = proto.Unmarshal(raw, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, w := range m.Graph.Initializer {
		if len(w.RawData) < 64 {
			continue
		}
		for _, e := range [][2]string{{"location", filepath.Base(weights)}, {"offset", fmt.Sprint(len(all))}, {"length", fmt.Sprint(len(w.RawData))}} {
			w.ExternalData = append(w.ExternalData, &pb.StringStringEntryProto{Key: proto.String(e[0]), Value: proto.String(e[1])})
		}
		all = append(all, w.RawData...)
		w.RawData, w.DataLocation = nil, pb.TensorProto_EXTERNAL.Enum()
	}
	if raw, err = proto.Marshal(m); err != nil || len(all) == 0 {
		t.Fatalf("%d bytes of weights, %v", len(all), err)
	}
	write(t, path, raw)
	write(t, weights, all)
}

// A change alters files under a run.
type change struct {
	name  string
	apply func(dir string) error
	// undo restores what was before; nil: nothing is to be restored.
	undo func(dir string) error
	late bool   // it is applied after a batch has been measured, else before the samples are read
	want string // the error of the run; "": it ends as if nothing had happened
	good bool   // the model good has scores
}

// replacing returns a change that renames a file away, and puts another in its place.
func replacing(name string, file func(dir string) string, content func(raw []byte) []byte) change {
	return change{name: name, want: "has changed since", apply: func(dir string) error {
		path := file(dir)
		raw, err := os.ReadFile(path)
		return errors.Join(err, os.Rename(path, path+".away"), os.WriteFile(path, content(raw), 0o666))
	}, undo: func(dir string) error { return os.Rename(file(dir)+".away", file(dir)) }}
}

// flipped returns other content of the same size, from the middle of which a bit differs.
func flipped(raw []byte) []byte {
	out := bytes.Clone(raw)
	out[len(out)/2] ^= 0x40
	return out
}

// changes are ways in which files change under a run of photosText.
func changes(t testing.TB) []change {
	weights := func(dir string) string { return filepath.Join(dir, "weights") }
	last := func(dir string) string { return photo(dir, 15) }
	other := func([]byte) []byte { return photoOf(t, 99) }
	early := replacing("weights replaced", weights, flipped)
	early.good = true
	replaced := replacing("weights replaced while the model runs", weights, flipped)
	replaced.good, replaced.late = true, true
	overwritten := change{name: "weights overwritten while the model runs", good: true, late: true, want: replaced.want}
	overwritten.apply = func(dir string) error {
		raw, err := os.ReadFile(weights(dir))
		return errors.Join(err, os.WriteFile(weights(dir), flipped(raw), 0o666))
	}
	overwritten.undo = overwritten.apply
	back := replacing("weights replaced and put back while the model runs", weights, flipped)
	back.good, back.late = true, true
	swap, undo := back.apply, back.undo
	back.apply, back.undo = func(dir string) error { return errors.Join(swap(dir), undo(dir)) }, nil
	removed := replacing("a sample removed", last, other)
	removed.want = "no such file or directory"
	replace := removed.apply
	removed.apply = func(dir string) error { return errors.Join(replace(dir), os.Remove(last(dir))) }
	away := change{name: "samples missing for a moment", good: true, apply: func(dir string) error {
		folder := filepath.Join(dir, "photos")
		time.AfterFunc(70*time.Millisecond, func() { os.Rename(folder+" away", folder) })
		return os.Rename(folder, folder+" away")
	}}
	return []change{early, replaced, overwritten, back, replacing("a sample replaced", last, other),
		replacing("a sample replaced by a text", last, func([]byte) []byte { return []byte("no image") }), removed, away}
}

// atPass is a handler of logs that calls a function when a pass over the samples begins.
type atPass struct {
	slog.Handler
	call func()
}

func (h atPass) Enabled(context.Context, slog.Level) bool { return true }

func (h atPass) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "pass" {
		h.call()
	}
	return nil
}

func (h atPass) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h atPass) WithGroup(string) slog.Handler      { return h }

// TestFilesThatChangeUnderARun changes files when the data have been hashed and the models opened.
// The cells that depend on a changed file fail, in one line, and none has a score under the hash of
// the earlier content. A run with the earlier content then has the scores of an undisturbed run.
func TestFilesThatChangeUnderARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePhotos(t, dir)
	o := studytest.Options(t)
	parse := func() *study.Study { return studytest.Parse(t, dir, photosText) }
	want := studytest.Run(t, parse(), filepath.Join(dir, "undisturbed"), o).Rows
	for i, c := range changes(t) {
		out := filepath.Join(dir, fmt.Sprint("run", i))
		disturbed := o
		disturbed.SaveInterval = time.Nanosecond
		var applied error
		apply := sync.OnceFunc(func() { applied = c.apply(dir) })
		if c.late {
			disturbed.Progress = func(p study.Progress) {
				if strings.Contains(p.Model, "external") {
					apply()
				}
			}
		} else {
			disturbed.Log = slog.New(atPass{slog.DiscardHandler, apply})
		}
		result, err := study.Run(t.Context(), parse(), out, disturbed)
		if applied != nil {
			t.Fatalf("%s: %v", c.name, applied)
		}
		var failures *study.Failures
		switch {
		case c.want == "" && err != nil, c.want != "" && (!errors.As(err, &failures) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
			continue
		}
		rows := map[string]int{}
		for _, r := range result.Rows {
			rows[r.Model]++
		}
		if (rows["good"] > 0) != c.good || c.want != "" && rows["external"] > 0 {
			t.Errorf("%s: numbers of scores %v", c.name, rows)
		}
		for _, d := range result.Record.Data {
			if len(d.Unreadable) > 0 {
				t.Errorf("%s: the samples %q are recorded as unreadable", c.name, d.Unreadable)
			}
		}
		if c.undo != nil {
			if err := c.undo(dir); err != nil {
				t.Fatal(err)
			}
		}
		got := studytest.Run(t, parse(), out, o).Rows
		sameBits(t, c.name, want, got)
	}
}

// sameBits checks that two runs have the same scores.
func sameBits(t testing.TB, what string, want, got []scores.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
		return
	}
	for i, w := range want {
		if g := got[i]; g.Model != w.Model || g.Statistic != w.Statistic || g.Value != w.Value {
			t.Errorf("%s: %+v, want %+v", what, g, w)
		}
	}
}
