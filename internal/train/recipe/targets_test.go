package recipe

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
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
		"decoder: unet, widths: [6, 8], blocks: 1 -> depth: 50, block: basic":                                        "leave out widths, blocks and block",
		"decoder: unet, widths: [6, 8], blocks: 1 -> widths: [6, 8], stem: imagenet, classes: 2":                     "classes 0 to 1",
		"tasks: {target: presence, weight: 0.5} -> mask-classes: 7\ntasks: {target: presence, output: p}":            "output is for an onnx network",
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

// maskedFolder writes images and masks of the classes 0 to 2, and returns the data entry.
func maskedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 24 {
		picture, mask := image.NewRGBA(image.Rect(0, 0, 16, 16)), image.NewGray(image.Rect(0, 0, 16, 16))
		draw.Draw(picture, picture.Bounds(), image.Black, image.Point{}, draw.Src)
		for k := 1; k <= 2; k++ {
			if i>>(k-1)%2 == 0 { // image i lacks class k
				continue
			}
			// Class 1 is red, on the left, and class 2 green, on the right.
			at := image.Rect(0, 0, 7, 8).Add(image.Pt(8*(k-1), i/4))
			draw.Draw(picture, at, image.NewUniform(color.RGBA{R: uint8(255 * (2 - k)), G: uint8(255 * (k - 1)), A: 255}), image.Point{}, draw.Src)
			draw.Draw(mask, at, image.NewUniform(color.Gray{Y: uint8(k)}), image.Point{}, draw.Src)
		}
		for folder, img := range map[string]image.Image{"images": picture, "masks": mask} {
			if err := os.MkdirAll(filepath.Join(dir, folder), 0o777); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := png.Encode(&b, img); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, folder, fmt.Sprintf("%02d.png", i)), b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	return fmt.Sprintf("{name: painted, images: {folder: %s/images, masks: %s/masks, layout: flat}}", dir, dir)
}

// A classifier learns presence from images with masks, and an ONNX network with an output for each
// target learns masks and presence together.
func TestPresenceOfImages(t *testing.T) {
	t.Parallel()
	const text = `name: painted
data: DATA
test: DATA
target: presence
mask-classes: 3
network: {resnet: {widths: [6, 8], blocks: 1}}
optimiser: {sgd: {rate: 0.1, momentum: 0.9}}
schedule: {steps: {factor: 0.2, at: [0.5]}}
epochs: 12
batch: 8
keep: last
`
	data := strings.ReplaceAll(text, "DATA", maskedFolder(t))
	s := must(t, parse(t, data), t.TempDir())
	if !(s.Test.Loss < 0.45) { // that of guessing is 0.69
		t.Errorf("the loss of presence is %g", s.Test.Loss)
	}
	m, err := train.Segmenter{Encoder: train.ResNet{Shape: []int{3, 16, 16}, Widths: []int{6, 8}, Blocks: []int{1}, Seed: 1}, Decoder: "unet", Classes: 3, Heads: []train.Head{{Name: "kinds", Outputs: 2}}}.Build()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "two.onnx")
	b, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	// What an ONNX network learns: both, or presence alone. The number of classes is that of its
	// outputs.
	network := "{resnet: {widths: [6, 8], blocks: 1}} -> {onnx: {file: " + file + ", training-mode: true, output: "
	both := []string{"mask-classes: 3\n -> ", "target: presence -> target: mask\ntasks: {target: presence, output: kinds, weight: 0.5}", network + "y}}"}
	dir := t.TempDir()
	s = must(t, parse(t, data, both...), dir)
	if s.Test.MeanIoU == nil || !(*s.Test.MeanIoU > 0.6) {
		t.Errorf("the test of both gives %+v", s.Test)
	}
	trained, err := onnx.Read(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	before, err := m.Tensor("kinds.linear.weight")
	if err != nil {
		t.Fatal(err)
	}
	if after, err := trained.Tensor("kinds.linear.weight"); err != nil || slices.Equal(after.Data, before.Data) {
		t.Errorf("the weights of the second task have not changed: %v", err)
	}
	s = must(t, parse(t, data, "mask-classes: 3\n -> ", network+"kinds}}"), t.TempDir())
	if !(s.Test.Loss < 0.45) {
		t.Errorf("the loss of presence by an ONNX network is %g", s.Test.Loss)
	}
	for want, changes := range map[string][]string{
		"set mask-classes":               {"mask-classes: 3\n -> "},
		"and there are classes 0 to 1":   {"mask-classes: 3 -> mask-classes: 2"},
		`has no output "presence"`:       append(slices.Clone(both), "output: kinds, -> "),
		"output must name":               append(slices.Clone(both), ", output: y}} -> }}"),
		"is that of the main loss":       append(slices.Clone(both), "target: presence, -> target: mask,"),
		"several tasks need a segmenter": {"target: presence -> target: presence\ntasks: [classes]"},
	} {
		text := data
		for _, change := range changes {
			from, to, _ := strings.Cut(change, " -> ")
			if !strings.Contains(text, from) {
				t.Fatalf("%s: the text to replace does not occur", change)
			}
			text = strings.Replace(text, from, to, 1)
		}
		f, err := Parse("t.yaml", []byte(text), nil)
		if err == nil {
			_, err = Run(t.Context(), f, t.TempDir(), options(t))
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
