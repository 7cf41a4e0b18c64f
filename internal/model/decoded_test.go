package model_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// imageSide is the side of the images of these tests in pixels. The grids of a YOLO detector, with
// strides of 8, 16 and 32 pixels, have 16 + 4 + 1 = 21 cells, here with one anchor each.
//
// A model finds outputs that are boxes, maps or keypoints and decodes them: brings them into a form
// that is the same for all models, described by an decoded.Format. The layout, such as yolov8, is
// the form that they have in the file. It is inferred, or set by an output.Setting.
const imageSide = 32

func TestBoxLayouts(t *testing.T) {
	t.Parallel()
	// The metadata that Ultralytics writes into its models.
	names := map[string]string{"names": `{0: 'cat', 1: "driver's cab", 2: 'owl'}`, "stride": "32"}
	// Two cats of which the first has the lower score and is suppressed, an owl at the same place,
	// and a box with a score below the default confidence threshold of 0.01. The values of an
	// anchor are the centre, the size and the scores of three classes; in YOLOv5 the probability of
	// an object comes before the scores.
	yolov8Rows := anchors(7, true, []float32{10, 8, 8, 8, .6, .1, 0}, []float32{10, 8, 8, 8.5, .9, .1, 0}, []float32{10, 8, 8, 8, 0, 0, .5}, []float32{20, 20, 2, 2, 0, .005, 0})
	yolov5Rows := anchors(8, false, []float32{10, 8, 8, 8, .5, .6, .1, 0}, []float32{10, 8, 8, 8.5, 1, .9, .1, 0}, []float32{10, 8, 8, 8, .5, 0, 0, 1}, []float32{20, 20, 2, 2, .004, 0, 1, 0})
	// Each box is found once for each class, the two cats at a score of 0.1 as a driver's cab too.
	const yoloBoxes = "6 3.75 14 12.25 cat 0.90; 6 4 14 12 owl 0.50; 6 4 14 12 driver's cab 0.10"
	yoloxRows := make([]float32, 21*8)
	copy(yoloxRows[5*8:], []float32{.25, -.25, float32(math.Log(2)), 0, .5, .8, .1, 0}) // cell of 8 pixels in column 1, row 1
	copy(yoloxRows[20*8:], []float32{.5, .5, 0, float32(math.Log(.5)), 1, 0, 0, .75})   // the cell of 32 pixels
	// Centre and size, the score of one class, then x, y and visibility of two keypoints.
	pose := anchors(11, true, []float32{10, 8, 8, 8, .75, 9, 9, 1, 11, 10, 0})
	for name, c := range map[string]struct {
		setting   output.Setting
		metadata  map[string]string
		batch     int
		constants []constant
		layout    string
		want      string
	}{
		"yolov8":            {metadata: names, batch: -1, constants: []constant{{name: "output0", shape: []int{7, 21}, values: yolov8Rows}}, layout: "yolov8", want: yoloBoxes},
		"yolov8, one image": {batch: 1, constants: []constant{{name: "output0", shape: []int{7, 21}, values: yolov8Rows}}, layout: "yolov8", want: strings.NewReplacer("cat", "0", "owl", "2", "driver's cab", "1").Replace(yoloBoxes)},
		"yolov5":            {metadata: names, batch: -1, constants: []constant{{name: "output", shape: []int{21, 8}, values: yolov5Rows}}, layout: "yolov5", want: "6 3.75 14 12.25 cat 0.90; 6 4 14 12 owl 0.50; 6 3.75 14 12.25 driver's cab 0.10"},
		"yolox":             {metadata: names, batch: -1, constants: []constant{{name: "output", shape: []int{21, 8}, values: yoloxRows}}, layout: "yolox", want: "0 8 32 24 owl 0.75; 2 2 18 10 cat 0.40; 2 2 18 10 driver's cab 0.05"},
		"yolov8, transposed": {setting: output.Setting{Boxes: "yolov8"}, metadata: names, batch: -1, layout: "yolov8",
			constants: []constant{{name: "output", shape: []int{21, 7}, values: anchors(7, false, []float32{10, 8, 8, 8, .6, .1, 0})}}, want: "6 4 14 12 cat 0.60; 6 4 14 12 driver's cab 0.10"},
		"yolov8, transposed without names": {batch: -1, layout: "yolov8", want: "6 4 14 12 2 0.60", constants: []constant{
			{name: "output", shape: []int{21, 84}, values: anchors(84, false, append([]float32{10, 8, 8, 8, 0, 0, .6}, make([]float32, 77)...))}}},
		"yolov5, columns first": {metadata: names, batch: -1, layout: "yolov5", want: "6 4 14 12 cat 0.30", constants: []constant{
			{name: "output", shape: []int{8, 21}, values: anchors(8, true, []float32{10, 8, 8, 8, .5, .6, 0, 0})}}},
		// Three anchors for each cell.
		"yolov7 without names": {batch: -1, layout: "yolov5", want: "6 4 14 12 1 0.30", constants: []constant{
			{name: "output", shape: []int{63, 8}, values: slices.Concat([]float32{10, 8, 8, 8, .5, 0, .6, 0}, make([]float32, 62*8))}}},
		"yolov6, whose probability of an object is one": {batch: -1, layout: "yolov5", want: "6 4 14 12 1 0.60", constants: []constant{
			{name: "output", shape: []int{21, 8}, values: slices.Concat([]float32{10, 8, 8, 8, 1, 0, .6, 0}, slices.Repeat([]float32{9, 9, 2, 2, 1, 0, 0, 0}, 20))}}},
		"masks without names": {batch: -1, layout: "yolov8", want: "6 4 14 12 0 0.60; 6 4 14 12 1 0.10",
			constants: []constant{{name: "output0", shape: []int{9, 21}, values: anchors(9, true, []float32{10, 8, 8, 8, .6, .1, 0, 7, 7})}, {name: "output1", shape: []int{2, 8, 8}, values: make([]float32, 128)}}},
		// Networks that need no suppression: corners, score, class and what follows.
		"end to end, with keypoints": {metadata: map[string]string{"names": "{0: 'person'}", "stride": "32", "kpt_shape": "[2, 3]"}, batch: -1, layout: "suppressed", want: "6 4 14 12 person 0.75 (9 9 true) (11 10 false)",
			constants: []constant{{name: "output0", shape: []int{3, 12}, values: slices.Concat([]float32{6, 4, 14, 12, .75, 0, 9, 9, 1, 11, 10, 0}, make([]float32, 24))}}},
		"end to end, with masks": {metadata: names, batch: -1, layout: "suppressed", want: "6 4 14 12 owl 0.75",
			constants: []constant{{name: "output0", shape: []int{3, 8}, values: slices.Concat([]float32{6, 4, 14, 12, .75, 2, 3, -3}, make([]float32, 16))}, {name: "output1", shape: []int{2, 8, 8}, values: make([]float32, 128)}}},
		"end to end, in fractions": {batch: -1, layout: "suppressed", want: "8 8 16 24 3 0.75",
			constants: []constant{{name: "output0", shape: []int{2, 6}, values: []float32{.25, .25, .5, .75, .75, 3, 0, 0, 0, 0, 0, 0}}}},
		// The same shape, of queries with two classes.
		"rt-detr of two classes": {metadata: map[string]string{"names": "{0: 'cat', 1: 'owl'}", "stride": "32"}, batch: -1, layout: "yolov8", want: strings.Repeat("6 4 14 12 owl 0.60; ", 9) + "6 4 14 12 owl 0.60",
			constants: []constant{{name: "output0", shape: []int{10, 6}, values: slices.Repeat([]float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide, 0, .6}, 10)}}},
		"labelled": {batch: -1, layout: "labelled", want: "6 4 14 12 7 0.90; 1 1 2 2 3 0.40", constants: []constant{
			{name: "labels", shape: []int{2}, values: []float32{3, 7}, typ: onnx.Int64}, {name: "boxes", shape: []int{2, 4}, values: []float32{1, 1, 2, 2, 6, 4, 14, 12}}, {name: "scores", shape: []int{2}, values: []float32{.4, .9}}}},
		"labelled, in fractions": {batch: -1, layout: "labelled", want: "8 8 16 24 7 0.90", constants: []constant{
			{name: "bboxes", shape: []int{1, 4}, values: []float32{.25, .25, .5, .75}}, {name: "labels", shape: []int{1}, values: []float32{7}, typ: onnx.Int64}, {name: "scores", shape: []int{1}, values: []float32{.9}}}},
		"labelled, with the score beside the box": {batch: -1, layout: "labelled", want: "6 4 14 12 7 0.90", constants: []constant{
			{name: "dets", shape: []int{1, 5}, values: []float32{6, 4, 14, 12, .9}}, {name: "labels", shape: []int{1}, values: []float32{7}, typ: onnx.Int64}}},
		// TensorFlow's coordinates are top, left, bottom and right, as fractions.
		"TensorFlow": {batch: -1, layout: "efficient-nms", want: "8 4 24 16 2 0.90", constants: []constant{
			{name: "num_detections", shape: []int{1}, values: []float32{1}}, {name: "detection_boxes", shape: []int{2, 4}, values: []float32{.125, .25, .5, .75, 0, 0, 1, 1}},
			{name: "detection_scores", shape: []int{2}, values: []float32{.9, .8}}, {name: "detection_classes", shape: []int{2}, values: []float32{2, 1}}}},
		// The names of the classes tell whether one means no object, whatever the number of queries.
		"detr of many queries": {metadata: map[string]string{"names": "{0: 'cat', 1: 'owl'}"}, batch: -1, layout: "detr", want: "6 4 14 12 owl 0.67", constants: []constant{
			{name: "logits", shape: []int{300, 3}, values: slices.Concat([]float32{0, float32(math.Log(4)), 0}, slices.Repeat([]float32{0, 0, 9}, 299))}, {name: "pred_boxes", shape: []int{300, 4}, values: slices.Repeat([]float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide}, 300)}}},
		"sigmoids of few queries, with names": {metadata: map[string]string{"names": "{0: 'cat', 1: 'owl'}"}, batch: -1, layout: "deformable-detr", want: "6 4 14 12 owl 0.80; 6 4 14 12 cat 0.30", constants: []constant{
			{name: "logits", shape: []int{1, 2}, values: []float32{logOdds(.3), logOdds(.8)}}, {name: "pred_boxes", shape: []int{1, 4}, values: []float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide}}}},
		// Without names the values of noise tell: all are negative.
		"sigmoids of few queries": {batch: -1, layout: "deformable-detr", want: "6 4 14 12 1 0.40; 6 4 14 12 0 0.30", constants: []constant{
			{name: "logits", shape: []int{1, 2}, values: []float32{logOdds(.3), logOdds(.4)}}, {name: "pred_boxes", shape: []int{1, 4}, values: []float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide}}}},
		"pose": {metadata: map[string]string{"names": "{0: 'person'}", "kpt_shape": "[2, 3]"}, batch: -1, constants: []constant{{name: "output0", shape: []int{11, 21}, values: pose}},
			layout: "yolov8", want: "6 4 14 12 person 0.75 (9 9 true) (11 10 false)"},
		// Two mask coefficients, both 7, follow the scores of the classes.
		"masks": {metadata: names, batch: -1, layout: "yolov8", want: "6 4 14 12 cat 0.60; 6 4 14 12 driver's cab 0.10",
			constants: []constant{{name: "output0", shape: []int{9, 21}, values: anchors(9, true, []float32{10, 8, 8, 8, .6, .1, 0, 7, 7})}, {name: "output1", shape: []int{2, 8, 8}, values: make([]float32, 128)}}},
		"no suppression": {setting: output.Setting{Boxes: "yolov8", Suppress: 1, Confidence: .55}, metadata: names, batch: -1, constants: []constant{{name: "output0", shape: []int{7, 21}, values: yolov8Rows}},
			layout: "yolov8", want: "6 3.75 14 12.25 cat 0.90; 6 4 14 12 cat 0.60"},
		"at most one box": {setting: output.Setting{Boxes: "yolov8", Most: 1}, batch: -1, constants: []constant{{name: "output0", shape: []int{7, 21}, values: yolov8Rows}}, layout: "yolov8", want: "6 3.75 14 12.25 0 0.90"},
		"yolov10": {setting: output.Setting{Boxes: "yolov10"}, metadata: names, batch: -1, layout: "yolov10", want: "6 4 14 12 owl 0.90; 6 4 14 12 owl 0.80",
			constants: []constant{{name: "output0", shape: []int{3, 6}, values: []float32{6, 4, 14, 12, .8, 2, 6, 4, 14, 12, .9, 2, 1, 1, 2, 2, 0, 0}}}},
		// The anchors as in yolov8, of a network that needs no suppression.
		"yolov10, raw": {setting: output.Setting{Boxes: "yolov10"}, metadata: names, batch: -1, layout: "yolov10", want: "6 3.75 14 12.25 cat 0.90; 6 4 14 12 cat 0.60; 6 4 14 12 owl 0.50; 6 4 14 12 driver's cab 0.10; 6 3.75 14 12.25 driver's cab 0.10",
			constants: []constant{{name: "output0", shape: []int{7, 21}, values: yolov8Rows}}},
		// The layout "suppressed" holds boxes after non-maximum suppression: corners, score and
		// class. Fractions, here false, states that coordinates are fractions of the image.
		"suppressed": {batch: -1, layout: "suppressed", want: "6 4 14 12 1 0.90",
			constants: []constant{{name: "output0", shape: []int{2, 6}, values: []float32{1, 1, 2, 2, 0, 0, 6, 4, 14, 12, .9, 1}}}},
		"suppressed, fractions": {setting: output.Setting{Boxes: "suppressed", Fractions: new(bool)}, batch: -1, layout: "suppressed", want: "6 4 14 12 1 0.90",
			constants: []constant{{name: "output0", shape: []int{1, 6}, values: []float32{6, 4, 14, 12, .9, 1}}}},
		"suppressed, index of the image in front": {batch: 1, layout: "suppressed", want: "6 4 14 12 3 0.90; 6 4 14 12 4 0.20",
			constants: []constant{{name: "output", shape: []int{2, 7}, values: []float32{0, 6, 4, 14, 12, 4, .2, 0, 6, 4, 14, 12, 3, .9}, unbatched: true}}},
		// num_dets, here 2, is the number of boxes that count.
		"efficient-nms": {batch: -1, layout: "efficient-nms", want: "6 4 14 12 2 0.90; 1 1 2 2 0 0.30", constants: []constant{
			{name: "num_dets", shape: []int{1}, values: []float32{2}, typ: onnx.Int32}, {name: "det_boxes", shape: []int{3, 4}, values: []float32{6, 4, 14, 12, 1, 1, 2, 2, 5, 5, 9, 9}},
			{name: "det_scores", shape: []int{3}, values: []float32{.9, .3, .99}}, {name: "det_classes", shape: []int{3}, values: []float32{2, 0, 1}, typ: onnx.Int32}}},
		// The last class of detr is "no object", which is left out.
		"detr": {batch: -1, layout: "detr", want: "6 4 14 12 1 0.67", constants: []constant{
			{name: "pred_logits", shape: []int{2, 3}, values: []float32{0, float32(math.Log(4)), 0, 0, 0, 9}}, {name: "pred_boxes", shape: []int{2, 4}, values: []float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide, .5, .5, 1, 1}}}},
		"deformable-detr": {setting: output.Setting{Boxes: "deformable-detr", Confidence: .1}, batch: -1, layout: "deformable-detr", want: "6 4 14 12 1 0.80; 6 4 14 12 0 0.30", constants: []constant{
			{name: "logits", shape: []int{2, 2}, values: []float32{logOdds(.3), logOdds(.8), -9, -9}}, {name: "pred_boxes", shape: []int{2, 4}, values: []float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide, .5, .5, 1, 1}}}},
		"corners and probabilities": {batch: -1, layout: "corners", want: "6 4 14 12 1 0.90", constants: []constant{
			{name: "pred_bboxes", shape: []int{12, 4}, values: slices.Repeat([]float32{6, 4, 14, 12}, 12)}, {name: "pred_scores", shape: []int{12, 2}, values: slices.Repeat([]float32{0, .9}, 12)}}},
		"deformable-detr after its sigmoid": {batch: -1, layout: "deformable-detr", want: strings.Repeat("6 4 14 12 1 0.80; ", 11) + "6 4 14 12 1 0.80", constants: []constant{
			{name: "scores", shape: []int{12, 2}, values: slices.Repeat([]float32{0, .8}, 12)}, {name: "boxes", shape: []int{12, 4}, values: slices.Repeat([]float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide}, 12)}}},
		// One query of RT-DETR, in fractions, whose names say that no probability of an object comes
		// first.
		"rt-detr by Ultralytics": {metadata: names, batch: -1, layout: "yolov8", want: strings.Repeat("6 4 14 12 cat 0.60; ", 9) + "6 4 14 12 cat 0.60",
			constants: []constant{{name: "output0", shape: []int{10, 7}, values: slices.Repeat([]float32{10. / imageSide, 8. / imageSide, 8. / imageSide, 8. / imageSide, .6, 0, 0}, 10)}}},
		// An exporter names outputs without names by numbers.
		"torchvision": {batch: 1, layout: "torchvision", want: "6 4 14 12 18 0.90; 1 1 2 2 3 0.40", constants: []constant{
			{name: "4321", shape: []int{2, 4}, values: []float32{1, 1, 2, 2, 6, 4, 14, 12}, unbatched: true}, {name: "1234", shape: []int{2}, values: []float32{3, 18}, typ: onnx.Int64, unbatched: true},
			{name: "77", shape: []int{2}, values: []float32{.4, .9}, unbatched: true}}},
		"torchvision without boxes": {batch: 1, layout: "torchvision", want: "", constants: []constant{
			{name: "boxes", shape: []int{0, 4}, unbatched: true}, {name: "scores", shape: []int{0}, unbatched: true}, {name: "labels", shape: []int{0}, typ: onnx.Int64, unbatched: true}}},
		"keypoints": {batch: 1, layout: "torchvision", want: "6 4 14 12 1 0.90 (7 8 true) (9 9 false)", constants: []constant{
			{name: "boxes", shape: []int{1, 4}, values: []float32{6, 4, 14, 12}, unbatched: true}, {name: "labels", shape: []int{1}, values: []float32{1}, typ: onnx.Int64, unbatched: true}, {name: "scores", shape: []int{1}, values: []float32{.9}, unbatched: true},
			{name: "keypoints", shape: []int{1, 2, 3}, values: []float32{7, 8, 1, 9, 9, 0}, unbatched: true}, {name: "keypoints_scores", shape: []int{1, 2}, values: []float32{3, 4}, unbatched: true}}},
		// Exports of torchvision do not declare the number of keypoints; that of a person is 17.
		"undeclared number of keypoints": {batch: 1, layout: "torchvision", want: "6 4 14 12 1 0.90" + strings.Repeat(" (7 8 true)", 17), constants: []constant{
			{name: "2659", shape: []int{1, 4}, values: []float32{6, 4, 14, 12}, unbatched: true}, {name: "2239", shape: []int{1}, values: []float32{1}, typ: onnx.Int64, unbatched: true}, {name: "2238", shape: []int{1}, values: []float32{.9}, unbatched: true},
			{name: "2668", shape: []int{1, 17, 3}, values: slices.Repeat([]float32{7, 8, 1}, 17), unbatched: true, undeclared: true}}},
		"NaN": {batch: -1, layout: "yolov8", want: "not finite", constants: []constant{{name: "output0", shape: []int{7, 21}, values: anchors(7, true, []float32{10, 8, 8, 8, .6, .1, 0}, []float32{10, 8, 8, 8, float32(math.NaN()), 0, 0})}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, rows := decode(t, writeConstants(t, c.batch, c.metadata, c.constants...), c.setting)
			if f.Layout != c.layout {
				t.Errorf("the layout is %s, want %s", f.Layout, c.layout)
			}
			for i := range 2 {
				if got := text(f, rows.At(i).Data); got != c.want {
					t.Errorf("image %d: %s\nwant %s", i, got, c.want)
				}
			}
		})
	}
}

func TestMapLayouts(t *testing.T) {
	t.Parallel()
	// Maps of 8 x 8 positions. At position p class p mod 4 has the largest of four logits.
	logits := make([]float32, 4*64)
	for p := range 64 {
		logits[(p%4)*64+p] = float32(math.Log(3)) // and the other three are 0, so its probability is 1/2
	}
	cycle := "[" + strings.TrimSpace(strings.Repeat("0 1 2 3 ", 16)) + "]"
	labels := make([]float32, 64)
	copy(labels, []float32{0, 1, 2, 0, 5})
	// mapText formats the map of a decoded output: a class or a value for each position. Of
	// classes, the probability at each position follows in the output.
	mapText := func(f *decoded.Format, row []float32) string { return fmt.Sprint(row[:f.Height*f.Width]) }
	for name, c := range map[string]struct {
		setting     output.Setting
		constants   []constant
		layout      string
		kind        decoded.Kind
		want        string
		probability float32 // probability of the class at the first position
	}{
		"logits": {constants: []constant{{name: "aux", shape: []int{4, 8, 8}, values: make([]float32, 256)}, {name: "out", shape: []int{4, 8, 8}, values: logits}},
			layout: "logits", kind: decoded.ClassMap, want: cycle, probability: .5},
		"logits and an auxiliary map without names": {constants: []constant{{name: "536", shape: []int{4, 8, 8}, values: logits}, {name: "550", shape: []int{4, 8, 8}, values: make([]float32, 256)}},
			layout: "logits", kind: decoded.ClassMap, want: cycle, probability: .5},
		"log-softmax": {constants: []constant{{name: "y", shape: []int{4, 8, 8}, values: logits, op: "LogSoftmax"}},
			layout: "logits", kind: decoded.ClassMap, want: cycle, probability: .5},
		"softmax, channels last": {constants: []constant{{name: "y", shape: []int{8, 8, 4}, values: transposed(logits, 4, 64), op: "Softmax", axis: -1}},
			layout: "probabilities", kind: decoded.ClassMap, want: cycle, probability: .5},
		"reconstruction": {constants: []constant{{name: "y", shape: []int{3, imageSide, imageSide}, values: make([]float32, 3*imageSide*imageSide), op: "Sigmoid"}},
			layout: "image", kind: decoded.ValueMap},
		"one logit": {setting: output.Setting{ClassMap: "logits"}, constants: []constant{{name: "mask", shape: []int{1, 2, 2}, values: []float32{logOdds(.75), -1, 1, -1}}},
			layout: "logits", kind: decoded.ClassMap, want: "[1 0 1 0]", probability: .75},
		"probabilities": {setting: output.Setting{ClassMap: "probabilities"}, constants: []constant{{name: "out", shape: []int{2, 1, 2}, values: []float32{.3, .6, .7, .4}}},
			layout: "probabilities", kind: decoded.ClassMap, want: "[1 0]", probability: .7},
		"labels": {constants: []constant{{name: "out", shape: []int{8, 8}, values: labels, typ: onnx.Int64}},
			layout: "labels", kind: decoded.ClassMap, want: fmt.Sprint(labels)},
		"depth":         {constants: []constant{{name: "predicted_depth", shape: []int{8, 8}, values: logits[:64]}}, layout: "depth", kind: decoded.ValueMap, want: mapText(&decoded.Format{Height: 8, Width: 8}, logits)},
		"normals":       {constants: []constant{{name: "normals", shape: []int{3, imageSide, imageSide}, values: make([]float32, 3*imageSide*imageSide)}}, layout: "normals", kind: decoded.ValueMap},
		"normals, y up": {setting: output.Setting{Values: "normals-y-up"}, constants: []constant{{name: "y", shape: []int{3, 8, 8}, values: make([]float32, 192)}}, layout: "normals-y-up", kind: decoded.ValueMap},
		"image":         {constants: []constant{{name: "y", shape: []int{3, imageSide, imageSide}, values: make([]float32, 3*imageSide*imageSide)}}, layout: "image", kind: decoded.ValueMap},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, rows := decode(t, writeConstants(t, -1, nil, c.constants...), c.setting)
			if f.Layout != c.layout || f.Kind != c.kind {
				t.Errorf("the output is %s %s, want %s %s", f.Kind, f.Layout, c.kind, c.layout)
			}
			row := rows.At(1).Data
			if got := mapText(f, row); c.want != "" && got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if c.probability > 0 && math.Abs(float64(row[f.Height*f.Width]-c.probability)) > 1e-6 {
				t.Errorf("probability %v, want %v", row[f.Height*f.Width], c.probability)
			}
		})
	}
}

// The keypoints of heat maps are at the centres of the positions of the largest values.
func TestHeatMaps(t *testing.T) {
	t.Parallel()
	// A keypoint is x and y in fractions of the image, and the largest value of its map. Three maps
	// of 4 x 8: the largest values are at row 2, column 5 of the first, at the end of the second,
	// and at the start of the third, whose other values are smaller than -1.
	maps := make([]float32, 3*4*8)
	maps[2*8+5], maps[32+31], maps[64] = 0.75, 2, -1
	for i := range 31 {
		maps[65+i] = -2
	}
	for _, c := range []struct {
		name    string
		setting output.Setting
	}{{"heatmaps", output.Setting{Confidence: 0.25, Keypoints: "heat-maps"}}, {"y", output.Setting{Keypoints: "heat-maps"}}} {
		f, rows := decode(t, writeConstants(t, -1, nil, constant{name: c.name, shape: []int{3, 4, 8}, values: maps}), c.setting)
		if f.Kind != decoded.PointList || f.Layout != "heat-maps" || f.Keypoints != 3 || f.Height != imageSide || f.Confidence != c.setting.Confidence {
			t.Errorf("the format is %+v", f)
		}
		want := []float32{5.5 / 8, 2.5 / 4, 0.75, 7.5 / 8, 3.5 / 4, 2, 0.5 / 8, 0.5 / 4, -1}
		for i := range 2 {
			if got := rows.At(i).Data; !slices.Equal(got, want) {
				t.Errorf("%s, image %d: %v, want %v", c.name, i, got, want)
			}
		}
	}
	maps = make([]float32, 2*8*8)
	maps[70] = float32(math.NaN()) // in the second map of 64 values
	f, rows := decode(t, writeConstants(t, -1, nil, constant{name: "pose_heatmap", shape: []int{2, 8, 8}, values: maps}), output.Setting{})
	if f.Layout != "heat-maps" {
		t.Errorf("a map named a heat map is taken for %s", f.Layout)
	}
	if row := rows.At(0).Data; row[2] != 0 || !math.IsNaN(float64(row[5])) {
		t.Errorf("NaN in the second map: keypoints %v, want NaN as the value of the second alone", row)
	}
}

// A detector that takes a single image without an axis for the batch is run image by image.
func TestDetectorOfOneImage(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("image", onnx.Float, 3, imageSide, imageSide)
	b.OutputInfo(onnx.ValueInfo{Name: "boxes", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1}, {Size: 4}}},
		b.Add(b.Const("", tensor.Tensor{Shape: []int{1, 4}, Data: []float32{6, 4, 14, 12}}), b.ReduceMean(x, false)))
	b.OutputInfo(onnx.ValueInfo{Name: "labels", Type: onnx.Int64, Shape: []onnx.Dim{{Size: -1}}}, b.Ints(5))
	b.OutputInfo(onnx.ValueInfo{Name: "scores", Type: onnx.Float, Shape: []onnx.Dim{{Size: -1}}}, b.Const("", tensor.Tensor{Shape: []int{1}, Data: []float32{.9}}))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), "net.onnx"), b)
	f, rows := decode(t, path, output.Setting{})
	if got, want := text(f, rows.At(1).Data), "6 4 14 12 5 0.90"; got != want {
		t.Errorf("boxes %s, want %s", got, want)
	}
}

// TestNotDecoded checks that outputs which only look like those of a layout are not decoded, and
// that a map of which only the shape says that it is one of classes has a doubt.
func TestNotDecoded(t *testing.T) {
	t.Parallel()
	const anchors = 21                // that the grids of the image have
	spread := func(n int) []float32 { // values from -2 to 2
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(i*7%41)/10 - 2
		}
		return out
	}
	for name, c := range map[string]struct {
		metadata  map[string]string
		constants []constant
		layout    string // "": none
		doubt     string
	}{
		"offsets from anchors":                {constants: []constant{{name: "cls", shape: []int{400, 5}, values: spread(2000)}, {name: "loc", shape: []int{400, 4}, values: spread(1600)}}},
		"offsets of few anchors":              {constants: []constant{{name: "cls", shape: []int{50, 5}, values: spread(250)}, {name: "loc", shape: []int{50, 4}, values: spread(200)}}},
		"a softmax with a background":         {constants: []constant{{name: "scores", shape: []int{400, 5}, values: spread(2000), op: "Softmax", axis: -1}, {name: "boxes", shape: []int{400, 4}, values: slices.Repeat([]float32{.1, .2, .3, .4}, 400)}}},
		"scores of YOLO's cells beside boxes": {constants: []constant{{name: "cls", shape: []int{anchors, 9}, values: spread(anchors * 9)}, {name: "reg", shape: []int{anchors, 4}, values: spread(anchors * 4)}}},
		"rows of features":                    {constants: []constant{{name: "y", shape: []int{12, 6}, values: spread(72)}}},
		"features of the cells of YOLO":       {constants: []constant{{name: "y", shape: []int{anchors, 9}, values: spread(anchors * 9)}}},
		"rotated boxes":                       {metadata: map[string]string{"names": "{0: 'a', 1: 'b'}", "stride": "32", "task": "obb"}, constants: []constant{{name: "output0", shape: []int{7, anchors}, values: make([]float32, 7*anchors)}}},
		"rotated boxes, end to end":           {metadata: map[string]string{"names": "{0: 'a', 1: 'b'}", "stride": "32", "task": "obb"}, constants: []constant{{name: "output0", shape: []int{3, 7}, values: make([]float32, 21)}}},
		"more columns than named classes":     {metadata: map[string]string{"names": "{0: 'a', 1: 'b'}", "stride": "32"}, constants: []constant{{name: "output0", shape: []int{16, anchors}, values: make([]float32, 16*anchors)}}},
		"YOLO without names":                  {constants: []constant{{name: "output0", shape: []int{7, anchors}, values: make([]float32, 7*anchors)}}, layout: "yolov8", doubt: "output \"output0\" has 7 columns, which may be boxes with 3 classes (yolov8) or with 2 classes"},
		"YOLO without names, columns last":    {constants: []constant{{name: "output0", shape: []int{anchors, 7}, values: make([]float32, 7*anchors)}}, layout: "yolov5", doubt: "and is taken for the latter: set output: {boxes: yolov8} or {boxes: yolov5}"},
		"queries without names":               {constants: []constant{{name: "logits", shape: []int{300, 3}, values: spread(900)}, {name: "boxes", shape: []int{300, 4}, values: slices.Repeat([]float32{.5, .4, .2, .3}, 300)}}, layout: "deformable-detr", doubt: "is taken for sigmoids (deformable-detr), as its number of queries is 300"},
		"optical flow":                        {constants: []constant{{name: "flow", shape: []int{2, imageSide, imageSide}, values: spread(2 * imageSide * imageSide)}}},
		"a feature map":                       {constants: []constant{{name: "y", shape: []int{48, 8, 8}, values: spread(48 * 64)}}, layout: "logits", doubt: "only its shape says"},
		"several sigmoids":                    {constants: []constant{{name: "y", shape: []int{5, 8, 8}, values: spread(5 * 64), op: "Sigmoid"}}, layout: "probabilities", doubt: "only its shape says"},
		"a map of text":                       {constants: []constant{{name: "y", shape: []int{1, 8, 8}, values: spread(64), op: "Sigmoid"}}, layout: "probabilities"},
		"as many classes as Pascal":           {constants: []constant{{name: "y", shape: []int{21, 8, 8}, values: spread(21 * 64)}}, layout: "logits"},
	} {
		m, err := modeltest.Open(t, writeConstants(t, -1, c.metadata, c.constants...), model.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		layout := ""
		if f, _ := m.Decoded(); f != nil {
			layout = f.Layout
		}
		doubts := strings.Join(m.DoubtsOf(false, true, 0), "; ")
		if layout != c.layout || (doubts != "") != (c.doubt != "") || !strings.Contains(doubts, c.doubt) {
			t.Errorf("%s: decoded as %q, doubts %q; want %q, %q", name, layout, doubts, c.layout, c.doubt)
		}
	}
}

func TestDecoderErrors(t *testing.T) {
	t.Parallel()
	zeros := func(name string, shape ...int) constant {
		return constant{name: name, shape: shape, values: make([]float32, tensor.Size(shape))}
	}
	for name, c := range map[string]struct {
		setting   output.Setting
		constants []constant
		want      string
	}{
		"does not fit":   {output.Setting{Boxes: "detr"}, []constant{zeros("y", 10, 6)}, "boxes: detr needs the outputs logits [batch, queries, classes + 1] and boxes [batch, queries, 4]; the model has y float[batch 10 6]"},
		"another output": {output.Setting{Boxes: "yolov8", Outputs: []string{"z"}}, []constant{zeros("y", 7, 21)}, `unknown output "z": the model has y`},
		"unknown layout": {output.Setting{Boxes: "yolo"}, []constant{zeros("y", 7, 21)}, `boxes: unknown layout "yolo": use torchvision, `},
		"1 x 1":          {output.Setting{ClassMap: "logits"}, []constant{zeros("y", 21, 1, 1)}, "output y has maps of 1 x 1: a single position has no place in the image"},
		"classes":        {output.Setting{Boxes: "yolov8", Classes: 80}, []constant{zeros("y", 7, 21)}, "classes is 80, and output y has 3"},
		"too many boxes": {output.Setting{Boxes: "yolov8"}, []constant{zeros("y", 6, 1_000_001)}, "output y has 1000001 boxes for an image, more than 1000000"},
		"two channels":   {output.Setting{Values: "normals"}, []constant{zeros("y", 2, 8, 8)}, "values: normals needs the outputs one map of floats [batch, 3, height, width]; the model has y float[batch 2 8 8]"},
		"heat maps":      {output.Setting{Keypoints: "heat-maps"}, []constant{zeros("y", 17, 1, 1)}, "keypoints: heat-maps needs the outputs one map of floats [batch, keypoints, height, width]"},
		"unknown points": {output.Setting{Keypoints: "offsets"}, []constant{zeros("y", 17, 8, 8)}, `keypoints: unknown layout "offsets": use heat-maps`},
		"a vector":       {output.Setting{Values: "depth"}, []constant{zeros("y", 7)}, "values: depth needs the outputs one map of floats"},
	} {
		_, err := modeltest.Open(t, writeConstants(t, -1, nil, c.constants...), model.Options{Decode: c.setting})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	// Without a setting, outputs that may be activations of a layer are not decoded.
	for name, c := range map[string][]constant{
		"vectors": {zeros("y", 10)}, "tokens": {zeros("y", 17, 12)}, "features": {zeros("y", 64, 4, 4)}, "many channels": {zeros("y", 512, 8, 8)}, "single": {zeros("y", 12, 1, 1)},
	} {
		m, err := modeltest.Open(t, writeConstants(t, -1, nil, c...), model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := m.Decoded(); f != nil {
			t.Errorf("%s are taken for %s (%s)", name, f.Kind, f.Layout)
		}
	}
}
