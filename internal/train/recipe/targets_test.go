package recipe

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
)

// segmentText is a training file (the settings of a training) of a segmenter, for images of one or
// two figures. Its second task (a further output with its own loss), presence, predicts which
// classes occur in the mask, which holds the class of each pixel. The helpers parse, must (which
// trains and returns the summary), read and options are in run_test.go; plainText, a training file
// of a classifier, is in file_test.go.
const segmentText = `name: scenes
data: {name: scenes, shapes: {n: 80, size: 16, kinds: [disc, bar], figures: [1, 2], texture: true}}
validation: 0.2
test: {name: test, shapes: {n: 24, size: 16, kinds: [disc, bar], figures: [1, 2], texture: true, seed: 2}}
network: {segmenter: {decoder: unet, widths: [6, 8], blocks: 1}}
tasks: {target: presence, weight: 0.5}
preprocess: {mean: 0.5, std: 0.25}
augment: [{flip: {probability: 0.5}}, {affine: {rotate: [-20, 20]}}]
optimiser: {adam: 0.01}
epochs: 3
batch: 16
`

// A segmenter with a second task trains, logs the mean IoU (intersection over union), and ends with
// the same network if the training is interrupted and resumed.
func TestSegmenter(t *testing.T) {
	t.Parallel()
	dir, interrupted := t.TempDir(), t.TempDir()
	s := must(t, parse(t, segmentText), dir)
	if s.Validation.MeanIoU == nil || s.Test.MeanIoU == nil || !(*s.Test.MeanIoU > 0 && *s.Test.MeanIoU <= 1) || s.Train.MeanIoU != nil {
		t.Errorf("validation %+v, test %+v", s.Validation, s.Test)
	}
	rows, err := csv.NewReader(bytes.NewReader(read(t, dir, logFile))).ReadAll()
	if err != nil || rows[0][10] != "validation_mean_iou" || rows[3][10] == "" {
		t.Errorf("the log is %v, %v", rows, err)
	}
	m, err := onnx.Read(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range m.Outputs() {
		names = append(names, o.Name)
	}
	if !slices.Equal(names, []string{"logits", "presence"}) {
		t.Errorf("the outputs are %q, want logits and presence", names)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t)
	o.Epoch = func(e train.Epoch) {
		if e.Number == 2 {
			cancel()
		}
	}
	if _, err := Run(ctx, parse(t, segmentText), interrupted, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("the training did not stop: %v", err)
	}
	if _, err := Run(t.Context(), parse(t, segmentText, "weight: 0.5 -> weight: 0.6"), interrupted, options(t)); err == nil || !strings.Contains(err.Error(), "with other settings") {
		t.Errorf("a checkpoint of another weight: %v", err)
	}
	must(t, parse(t, segmentText), interrupted)
	if !bytes.Equal(read(t, dir, modelFile), read(t, interrupted, modelFile)) {
		t.Error("the networks differ")
	}
}

// The target presence (which classes occur in the mask) can be learned by a classifier, and by a
// segmenter as a further task next to classes.
func TestPresence(t *testing.T) {
	t.Parallel()
	// A change is a text, " -> " and its replacement. These make a classifier of presence.
	presence := []string{"tasks: {target: presence, weight: 0.5}\n -> target: presence\n", "{segmenter: {decoder: unet, widths: [6, 8], blocks: 1}} -> {resnet: {widths: [6, 8], blocks: 1}}", "epochs: 3 -> epochs: 1"}
	s := must(t, parse(t, segmentText, presence...), t.TempDir())
	if s.Test.Accuracy != nil || s.Test.MeanIoU != nil || !(s.Test.Loss > 0) {
		t.Errorf("the test of presence gives %+v, want a loss alone", s.Test)
	}
	// Images with one figure have a class in addition to the mask. The number of figures is changed
	// twice, since it occurs in the training data and in the test data.
	both := []string{"figures: [1, 2] -> figures: [1, 1]", "figures: [1, 2] -> figures: [1, 1]", "tasks: {target: presence, weight: 0.5} -> tasks: [classes, presence]", "epochs: 3 -> epochs: 1", "unet -> fcn"}
	if s := must(t, parse(t, segmentText, both...), t.TempDir()); s.Test.MeanIoU == nil {
		t.Errorf("the test of a segmenter with two further tasks has no mean IoU: %+v", s.Test)
	}
}

func TestTargetErrors(t *testing.T) {
	t.Parallel()
	// The error for each change of segmentText.
	for change, want := range map[string]string{
		"preprocess: -> target: presence\npreprocess:":                                                               "write it under tasks",
		"preprocess: -> loss: cross-entropy\npreprocess:":                                                            "the loss of masks is position-cross-entropy",
		"preprocess: -> mixup: 0.2\npreprocess:":                                                                     "not for masks",
		"preprocess: -> label-noise: 0.2\npreprocess:":                                                               "needs classes",
		"preprocess: -> adversarial: {radius: 0.1}\npreprocess:":                                                     "cannot be learned on adversarial",
		"target: presence, -> target: mask,":                                                                         "the segmenter itself",
		"tasks: {target: presence, weight: 0.5} -> tasks: [presence, presence]":                                      "named twice",
		"weight: 0.5 -> weight: -1":                                                                                  "at least 0",
		"target: presence, weight: 0.5 -> target: classes":                                                           "have no classes",
		"{segmenter: {decoder: unet, widths: [6, 8], blocks: 1}} -> {resnet: {depth: 20}}":                           "several tasks need a segmenter",
		"decoder: unet -> decoder: deeplab":                                                                          "unknown decoder",
		"decoder: unet, widths: [6, 8], blocks: 1 -> depth: 20, widths: [6]":                                         "leave out widths",
		"decoder: unet, widths: [6, 8], blocks: 1 -> width: 20":                                                      "width needs depth",
		"decoder: unet, widths: [6, 8], blocks: 1 -> depth: 21":                                                      "no depth of 21",
		"size: 16 -> size: 15":                                                                                       "divisible by 2",
		"kinds: [disc, bar], figures: [1, 2], texture: true} -> kinds: [disc, bar]}":                                 "not known",
		"shapes: {n: 80, size: 16, kinds: [disc, bar], figures: [1, 2] -> shapes: {n: 80, size: 16, figures: [2, 1]": "figures is [2 1]",
	} {
		from, to, _ := strings.Cut(change, " -> ")
		text := strings.Replace(segmentText, from, to, 1)
		if text == segmentText {
			t.Fatalf("%s: the text to replace does not occur", change)
		}
		f, err := Parse("t.yaml", []byte(text), nil)
		if err == nil {
			_, err = Run(t.Context(), f, t.TempDir(), options(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// Label noise and mixup change the training samples, but not those of validation and test. Only
// label noise changes the fingerprint of the training data (a hash of the samples and labels, in
// the field Data), since mixup is drawn for each batch.
func TestNoiseAndMixup(t *testing.T) {
	t.Parallel()
	plain := must(t, parse(t, plainText, "epochs: 3 -> epochs: 1"), t.TempDir())
	for _, change := range []string{"label-noise: 0.4", "mixup: 0.5"} {
		s := must(t, parse(t, plainText, "epochs: 3 -> epochs: 1\n"+change), t.TempDir())
		if s.Train.Loss == plain.Train.Loss || s.Validation.Data != plain.Validation.Data || s.Test.Data != plain.Test.Data {
			t.Errorf("%s: %+v, and without it %+v", change, s.Train, plain.Train)
		}
		if noisy := s.Train.Data != plain.Train.Data; noisy != strings.HasPrefix(change, "label") {
			t.Errorf("%s: the fingerprint of the training data changes: %v", change, noisy)
		}
	}
	for change, want := range map[string]string{
		"mixup: 0.2\nadversarial: {radius: 0.1}": "cannot be combined",
		"mixup: -1":                              "at least 0",
		"label-noise: 2":                         "at most 1",
		"label-noise: 0.5\ntarget: x":            "needs classes",
	} {
		if _, err := Parse("t.yaml", []byte(plainText+change+"\n"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}
