package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/benchmark"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// bytesNPY returns an array of unsigned bytes in the format of NumPy.
func bytesNPY(shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", shape)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8)), append([]byte(header), data...)...)
}

// A benchmarkNumber is an element of what benchmark --json prints.
type benchmarkNumber struct {
	Statistic, Kind, Missing string
	Value                    float64
	N                        int
	Own                      bool
}

// runBenchmark runs a study file with DATA=dir and returns the means that the command benchmark
// prints.
func runBenchmark(t *testing.T, study, dir, model string) map[string]benchmarkNumber {
	t.Helper()
	file := write(t, t.TempDir(), "study.yaml", []byte(study))
	out := filepath.Join(t.TempDir(), "run")
	if code, message := call(t, "run", file, "--var", "DATA="+dir, "--var", "MODEL="+model, "-o", out); code != 0 {
		t.Fatalf("run: %s\n%s", message, study)
	}
	text, err := output(t, "benchmark", out, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []benchmarkNumber
	if err := json.Unmarshal([]byte(text), &numbers); err != nil {
		t.Fatal(err)
	}
	found := map[string]benchmarkNumber{}
	for _, n := range numbers {
		if n.Kind == "" {
			found[n.Statistic] = n
		}
	}
	if table, err := output(t, "benchmark", out, "--all"); err != nil || !strings.Contains(table, "95 % interval") {
		t.Errorf("the table is %q, %v", table, err)
	}
	return found
}

// writeConstant writes a classifier of images of size x size with the given logits of some outputs,
// whatever the image. The logit of output 1 is -dark times the mean of the normalised image, which
// is negative for black images.
func writeConstant(t *testing.T, path string, size, classes int, logits map[int]float32, dark float32) {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3, size, size)
	bias, weights := tensor.New(classes), tensor.New(1, classes)
	for k, v := range logits {
		bias.Data[k] = v
	}
	weights.Data[1] = -dark
	mean := b.ReduceMean(x, false, 1, 2, 3) // batch
	column := b.Reshape(mean, -1, 1)
	b.Output("logits", b.Gemm(column, b.Const("w", weights), b.Const("c", bias), nil))
	testmodel.Save(t, path, b)
}

// writePhoto writes a small JPEG or PNG of a gradient.
func writePhoto(t *testing.T, path string) {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 48, 40))
	for i := range 48 * 40 {
		img.Set(i%48, i/48, color.NRGBA{uint8(5 * (i % 48)), uint8(6 * (i / 48)), 120, 255})
	}
	var data bytes.Buffer
	err := jpeg.Encode(&data, img, nil)
	if filepath.Ext(path) == ".png" {
		data.Reset()
		err = png.Encode(&data, img)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, data.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// templateOf returns the study file that the command prints for a benchmark.
func templateOf(t *testing.T, name string) string {
	t.Helper()
	study, err := output(t, "benchmark", "--template", name)
	if err != nil {
		t.Fatal(err)
	}
	return study
}

// Outputs of ImageNet: a dog and a cat. The classifier of the tests predicts the dog for any image,
// and next the cat.
const dog, cat = 205, 285

// layImageNet makes a folder of the photos of a tench, a dog and a cat.
func layImageNet(t *testing.T, folder string, numbered bool) {
	t.Helper()
	for _, class := range []int{0, dog, cat} {
		name := dataset.ImageNetSynsets()[class]
		if numbered {
			name = fmt.Sprint(class)
		}
		writePhoto(t, filepath.Join(folder, name, "photo.JPEG"))
	}
}

// TestTemplatesOfImageNet makes small folders laid out as ImageNet-C, -3DCC, -A, -R, -Sketch and V2
// are published, each with the same three photos, and runs the study files that the command prints,
// as they are. A third of the predictions is right.
func TestTemplatesOfImageNet(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "net.onnx")
	writeConstant(t, model, 224, 1000, map[int]float32{dog: 10, cat: 9}, 0)
	layImageNet(t, filepath.Join(dir, "val"), false)
	for _, b := range benchmark.All() {
		root := filepath.Join(dir, b.Published)
		switch {
		case b.Groups != nil:
			continue
		case b.Layout == benchmark.Single:
			layImageNet(t, root, b.Numbered)
			for class := range 1000 { // all folders of ImageNetV2, most of them empty
				if !b.Numbered {
					break
				}
				if err := os.MkdirAll(filepath.Join(root, fmt.Sprint(class)), 0o777); err != nil {
					t.Fatal(err)
				}
			}
		case b.Layout == benchmark.Folders:
			for _, k := range b.Kinds {
				for _, severity := range b.Severities {
					if !k.Extra {
						layImageNet(t, filepath.Join(root, b.Path(b.Folders[0], k, severity)), false)
					}
				}
			}
		default:
			continue
		}
		found := runBenchmark(t, templateOf(t, b.Name), dir, model)
		want, value := "mean-error", 2./3
		switch {
		case b.Reference != "":
			want, value = "mce", 0
			for _, name := range b.Standard() {
				k, _ := b.Kind(name)
				value += 2. / 3 / k.Reference / 15
			}
		case b.Layout == benchmark.Single:
			want, value = "accuracy", 1./3
		}
		missing := fmt.Sprintf("%d of %d images", b.Images-3, b.Images)
		if v, ok := found[want]; !ok || v.N != 3 || v.Own || v.Missing != missing || math.Abs(v.Value-value) > 1e-9 {
			t.Errorf("%s: %s is %+v, want %v of 3 images without %s", b.Name, want, v, value, missing)
		}
		if v, ok := found["relative-robustness"]; ok == b.Present || ok && math.Abs(v.Value-1) > 1e-9 {
			t.Errorf("%s: the relative robustness is %+v", b.Name, v)
		}
	}
	// Without the published images, the clean ones are corrupted.
	found := runBenchmark(t, "name: own\ndata: {name: c, benchmark: {name: imagenet-c, clean: \"${DATA}/val\", kinds: [fog], severities: 5}}\nmodels: {name: m, onnx: \"${MODEL}\", preprocess: imagenet}\nmeasures: accuracy\n", dir, model)
	if v := found["mce"]; !v.Own || !strings.HasPrefix(v.Missing, "gaussian-noise, ") {
		t.Errorf("own corruptions: mce is %+v", v)
	}
}

// TestTemplateOfImageNetP runs the study file of ImageNet-P on folders of one video each, of frames
// that get black. It is encoded as published where there is ffmpeg, else a GIF.
func TestTemplateOfImageNetP(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "net.onnx")
	writeConstant(t, model, 224, 1000, map[int]float32{dog: 10}, 40)
	var clip gif.GIF
	for i := range 5 {
		img := image.NewPaletted(image.Rect(0, 0, 224, 224), color.Palette{color.Black, color.White})
		for p := range img.Pix {
			img.Pix[p] = uint8(1 - i/3) // three white frames, then two black ones
		}
		clip.Image, clip.Delay = append(clip.Image, img), append(clip.Delay, 10)
	}
	var data bytes.Buffer
	if err := gif.EncodeAll(&data, &clip); err != nil {
		t.Fatal(err)
	}
	file := write(t, dir, "clip.gif", data.Bytes())
	if ffmpeg, err := exec.LookPath("ffmpeg"); err == nil {
		video := filepath.Join(dir, "clip.mp4")
		if text, err := exec.Command(ffmpeg, "-v", "error", "-i", file, "-pix_fmt", "yuv420p", "-fps_mode", "passthrough", video).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		file = video
	}
	known, err := benchmark.Find("imagenet-p")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known.Standard() {
		k, _ := known.Kind(name)
		folder := filepath.Join(dir, known.Published, known.Path(known.Folders[0], k, 0), "n01440764")
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(file, filepath.Join(folder, "ILSVRC2012_val_00000001"+filepath.Ext(file))); err != nil {
			t.Fatal(err)
		}
	}
	found := runBenchmark(t, templateOf(t, "imagenet-p"), dir, model)
	mfr, rate := 0., 0.
	for _, name := range known.Standard() {
		k, _ := known.Kind(name)
		flips := 1. / 4 // one of four frames differs from the one before
		if k.FromFirst() {
			flips = 2. / 4
		}
		mfr, rate = mfr+flips/k.Reference/10, rate+flips/10
	}
	if v := found["mfr"]; math.Abs(v.Value-mfr) > 1e-9 || v.N != 1 || v.Missing != "49999 of 50000 videos" {
		t.Errorf("mfr is %+v, want %v", v, mfr)
	}
	if v := found["mean-flip-rate"]; math.Abs(v.Value-rate) > 1e-9 {
		t.Errorf("the mean flip rate is %+v, want %v", v, rate)
	}
}

// TestTemplateOfObjectNet runs the study file of ObjectNet on a folder laid out as published: with
// images in folders, some of classes that ImageNet lacks, and the files that map the others. Images of
// a class whose outputs are a dog or a cat are classified correctly, since a dog is predicted.
func TestTemplateOfObjectNet(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "net.onnx")
	writeConstant(t, model, 224, 1000, map[int]float32{dog: 10, cat: 9}, 0)
	root := filepath.Join(dir, "objectnet-1.0")
	labels, overlap, ids := map[string]string{}, map[string]string{}, map[string]int{}
	names := make([]string, 1000)
	for output := range 1000 {
		id := output * 7 % 1000 // of the challenge: another order
		ids[fmt.Sprint(output)], names[id] = id, fmt.Sprintf("object %d", output)
	}
	for class := range 120 {
		folder := fmt.Sprintf("class_%03d", class)
		labels[folder] = fmt.Sprintf("Class %d", class)
		if class < 113 {
			overlap[labels[folder]] = fmt.Sprintf("object %d", class)
		}
		writePhoto(t, filepath.Join(root, "images", folder, "a.png"))
	}
	overlap["Class 4"] = fmt.Sprintf("object 4; object %d; object %d", cat, dog)
	writePhoto(t, filepath.Join(root, "images", "class_004", "b.png"))
	if err := os.Mkdir(filepath.Join(root, "mappings"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{"folder_to_objectnet_label.json": labels, "objectnet_to_imagenet_1k.json": overlap, "pytorch_to_imagenet_2012_id.json": ids} {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "mappings"), name, data)
	}
	write(t, filepath.Join(root, "mappings"), "imagenet_to_label_2012_v2", []byte(strings.Join(names, "\n")+"\n"))
	found := runBenchmark(t, templateOf(t, "objectnet"), dir, model)
	if v := found["accuracy"]; math.Abs(v.Value-2./114) > 1e-9 || v.N != 114 || v.Missing != "18460 of 18574 images" {
		t.Errorf("the accuracy is %+v, want 2 of 114", v)
	}
	// An incomplete copy.
	delete(overlap, "Class 9")
	data, _ := json.Marshal(overlap)
	write(t, filepath.Join(root, "mappings"), "objectnet_to_imagenet_1k.json", data)
	file := write(t, dir, "study.yaml", []byte(templateOf(t, "objectnet")))
	if code, message := call(t, "run", file, "--var", "DATA="+dir, "--var", "MODEL="+model, "-o", filepath.Join(dir, "run")); code == 0 || !strings.Contains(message, "map 112 classes") {
		t.Errorf("without a class: %q", message)
	}
	if err := os.Remove(filepath.Join(root, "mappings", "imagenet_to_label_2012_v2")); err != nil {
		t.Fatal(err)
	}
	if code, message := call(t, "run", file, "--var", "DATA="+dir, "--var", "MODEL="+model, "-o", filepath.Join(dir, "run")); code == 0 || !strings.Contains(message, "there is no") || !strings.Contains(message, "imagenet_to_label_2012_v2") {
		t.Errorf("without a mapping: %q", message)
	}
}

// TestTemplateOfLAIONC runs the study file of LAION-C. The dog is the most probable output, and the
// cats have the largest mean probability, since they are fewer.
func TestTemplateOfLAIONC(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "net.onnx")
	writeConstant(t, model, 224, 1000, map[int]float32{dog: 10, cat: 9}, 0)
	known, err := benchmark.Find("laion-c")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range known.Kinds {
		for _, severity := range known.Severities {
			for _, class := range []string{"cat", "dog", "car_truck"} {
				writePhoto(t, filepath.Join(dir, known.Published, known.Path(known.Folders[0], k, severity), class, "a.jpg"))
			}
		}
	}
	found := runBenchmark(t, templateOf(t, "laion-c"), dir, model)
	if v := found["mean-accuracy"]; math.Abs(v.Value-1./3) > 1e-9 || v.N != 3 || v.Missing != "" {
		t.Errorf("the mean accuracy is %+v, want 1/3", v)
	}
}

// TestTemplatesOfCIFAR runs the study files of CIFAR-10-C and CIFAR-100-C on arrays as they have
// them: five severities one after the other, here of images of class 0, of which those of severity 5
// are black. The classifier predicts class 1 for these, and class 0 for others.
func TestTemplatesOfCIFAR(t *testing.T) {
	const images, values = 20, 3 * 32 * 32
	dir := t.TempDir()
	for name, classes := range map[string]int{"cifar-10-c": 10, "cifar-100-c": 100} {
		model := filepath.Join(dir, name+".onnx")
		writeConstant(t, model, 32, classes, map[int]float32{0: 1}, 0)
		known, err := benchmark.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(dir, known.Published)
		if err := os.Mkdir(root, 0o777); err != nil {
			t.Fatal(err)
		}
		var batch []byte // of clean images
		for range images {
			if batch = append(batch, 0); classes == 100 {
				batch = append(batch, 0) // a coarse and a fine label
			}
			batch = append(batch, bytes.Repeat([]byte{180}, values)...)
		}
		write(t, dir, map[int]string{10: "test_batch.bin", 100: "test.bin"}[classes], batch)
		pixels := bytes.Repeat([]byte{180}, 5*images*values)
		labels := make([]byte, 5*images)
		for i := 4 * images; i < 5*images; i++ {
			labels[i] = 1 // of severity 5, which is wrong
		}
		for _, k := range known.Kinds { // all are published, and 15 are measured
			write(t, root, k.Folder()+".npy", bytesNPY(fmt.Sprintf("%d, 32, 32, 3", 5*images), pixels))
		}
		write(t, root, "labels.npy", bytesNPY(fmt.Sprintf("%d,", 5*images), labels))
		found := runBenchmark(t, templateOf(t, name), dir, model)
		missing := "9980 of 10000 images"
		if v := found["mean-error"]; math.Abs(v.Value-0.2) > 1e-9 || v.Own || v.N != images || v.Missing != missing {
			t.Errorf("%s: mean-error is %+v, want 0.2", name, v)
		}
		if v := found["clean-accuracy"]; v.Value != 1 {
			t.Errorf("%s: the clean accuracy is %+v, want 1", name, v)
		}
		write(t, root, "labels.npy", bytesNPY(fmt.Sprintf("%d,", 5*images-1), labels[1:])) // a partial copy
		file := write(t, dir, "study.yaml", []byte(templateOf(t, name)))
		if code, message := call(t, "run", file, "--var", "DATA="+dir, "--var", "MODEL="+model, "-o", filepath.Join(dir, "run")); code == 0 {
			t.Errorf("%s: labels of other images are accepted: %q", name, message)
		}
	}
}

// TestTemplateOfCOCO runs the study file of COCO-C on images of one bright square each, which the
// detector finds exactly.
func TestTemplateOfCOCO(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "net.onnx")
	const size = 32
	testmodel.WriteDetector(t, model, size, false)
	graph, err := onnx.Read(model)
	if err != nil {
		t.Fatal(err)
	}
	named, err := graph.WithMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}").Bytes() // as Ultralytics writes them
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "net.onnx", named)
	var images, boxes []string
	for i := range 6 {
		img := image.NewNRGBA(image.Rect(0, 0, size, size))
		for p := range size * size {
			c := color.NRGBA{0, 0, 0, 255}
			if x, y := p%size, p/size; x >= 4+i && x < 16+i && y >= 8 && y < 20 {
				c.R = 255
			}
			img.Set(p%size, p/size, c)
		}
		var data bytes.Buffer
		if err := png.Encode(&data, img); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(dir, "val2017")
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%012d.png", i)
		write(t, folder, name, data.Bytes())
		images = append(images, fmt.Sprintf(`{"id": %d, "file_name": %q, "height": %d, "width": %d}`, i, name, size, size))
		boxes = append(boxes, fmt.Sprintf(`{"id": %d, "image_id": %d, "category_id": 1, "bbox": [%d, 8, 12, 12]}`, i+1, i, 4+i))
	}
	folder := filepath.Join(dir, "annotations")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "instances_val2017.json", fmt.Appendf(nil, `{"images": [%s], "annotations": [%s], "categories": [{"id": 1, "name": "red"}, {"id": 2, "name": "green"}, {"id": 3, "name": "blue"}]}`,
		strings.Join(images, ", "), strings.Join(boxes, ", ")))
	found := runBenchmark(t, templateOf(t, "coco-c"), dir, model)
	clean, mean := found["clean-precision"], found["mpc"]
	if clean.Value != 1 || !mean.Own || mean.Value < 0.05 || mean.Value > 0.95 || math.Abs(found["rpc"].Value-mean.Value) > 1e-12 {
		t.Errorf("the clean mAP is %+v, mPC %+v, rPC %+v", clean, mean, found["rpc"])
	}
}

// TestBenchmarkMistakes checks the messages on entries that are not a benchmark as published.
func TestBenchmarkMistakes(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"noise/gaussian_noise/1", "noise/gaussian_noise/2", "gaussian_noise/4", "gaussian_noise/5", "snow", "images", "mosaic/intensity_level_1"} {
		writePhoto(t, filepath.Join(dir, "part", folder, "n01440764", "a.jpg"))
	}
	for entry, want := range map[string]string{
		"{name: imagenet-d, path: x}":                                 `unknown benchmark "imagenet-d"`,
		"imagenet-c":                                                  "needs path",
		"{name: imagenet-3dcc, clean: x}":                             "needs path",
		"{name: imagenet-c, path: empty}":                             "there is no empty/noise/gaussian_noise/1 and no empty/gaussian_noise/1: path is the folder",
		"{name: imagenet-c, path: part, kinds: [gaussian-noise]}":     "1 of 5 folders are missing, the first is part/noise/gaussian_noise/3 and no part/gaussian_noise/3: complete the copy",
		"{name: imagenet-p, path: empty}":                             "there is no empty/gaussian_noise and no empty/noise/gaussian_noise",
		"{name: imagenet-p, path: empty, clean: x}":                   "has no clean images",
		"{name: imagenet-p, path: part, kinds: [snow]}":               "no videos",
		"{name: objectnet, path: empty}":                              "there is no empty/images",
		"{name: objectnet, path: part, clean: x}":                     "113 classes",
		"{name: objectnet, path: part}":                               "folder_to_objectnet_label.json",
		"{name: objectnet}":                                           "needs path",
		"{name: laion-c, path: part}":                                 "29 of 30 folders are missing, the first is part/geometric_shapes/intensity_level_1: complete",
		"{name: laion-c, path: part, kinds: [mosaic], severities: 1}": "none of the folders of classes (n01440764)",
		"{name: cifar-10-c, path: empty}":                             "no such file",
		"{name: imagenet-c, path: x, kinds: [rain]}":                  `has no kind "rain"`,
		"{name: imagenet-c, clean: x, kinds: [spatter]}":              "cannot be computed here",
		"{name: imagenet-c, path: x, severities: [6]}":                "must be one of [1 2 3 4 5]",
		"{name: imagenet-r, path: x, clean: y}":                       "200 classes",
		"{name: coco-c, path: x}":                                     "not published as images",
		"{name: coco-c, clean: x}":                                    "needs annotations",
		"{name: imagenet-c, path: x, annotations: y}":                 "no annotations",
		"{name: imagenet-v2, path: empty}":                            "the copy is incomplete",
		"{name: imagenet-v2, path: nowhere, clean: \"also nowhere\"}": "nowhere",
	} {
		file := write(t, dir, "study.yaml", []byte("name: n\ndata: {name: d, benchmark: "+entry+"}\nmodels: {name: m, onnx: m.onnx}\nmeasures: accuracy\n"))
		if code, message := call(t, "run", file, "-o", filepath.Join(dir, "run")); code == 0 || !strings.Contains(message, want) {
			t.Errorf("%s: %q, want %q", entry, message, want)
		}
	}
	if _, code := errorOutput(t, "benchmark", "--template", "none"); code == 0 {
		t.Error("a template of an unknown benchmark is printed")
	}
}
