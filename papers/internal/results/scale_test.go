package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/train/recipe"
)

// fivePapers are the folders whose files have the scale of a paper.
var fivePapers = []string{"seis", "goodfellow", "stir", "synesis", "effective-invariance"}

// put writes a file, with its folders.
func put(t *testing.T, content []byte, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// standIns writes a few samples in the formats of the data of the papers, and returns the folder.
func standIns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	records := func(n, labels, classes int) []byte {
		out := make([]byte, n*(labels+3072))
		for i := range n {
			out[i*(labels+3072)+labels-1] = byte(i % classes)
		}
		return out
	}
	put(t, records(160, 1, 10), dir, "cifar10/data_batch_1.bin")
	put(t, records(160, 1, 10), dir, "cifar10/data_batch_2.bin")
	put(t, records(20, 1, 10), dir, "cifar10/test_batch.bin")
	put(t, records(160, 2, 100), dir, "cifar100/train.bin")
	put(t, records(20, 2, 100), dir, "cifar100/test.bin")
	for _, part := range []string{"train", "t10k"} {
		const n = 160
		images := binary.BigEndian.AppendUint32(nil, 0x803)
		for _, size := range []uint32{n, 28, 28} {
			images = binary.BigEndian.AppendUint32(images, size)
		}
		labels := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 0x801), n)
		put(t, append(images, make([]byte, n*28*28)...), dir, "mnist", part+"-images-idx3-ubyte")
		for i := range n {
			labels = append(labels, byte(i%10))
		}
		put(t, labels, dir, "mnist", part+"-labels-idx1-ubyte")
	}
	var picture, mask bytes.Buffer
	gray := image.NewGray(image.Rect(0, 0, 48, 40))
	gray.SetGray(7, 7, color.Gray{Y: 20}) // the last of 21 classes
	if err := png.Encode(&mask, gray); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&picture, image.NewRGBA(gray.Bounds())); err != nil {
		t.Fatal(err)
	}
	for i := range 32 {
		for _, part := range []string{"train", "val"} {
			put(t, picture.Bytes(), dir, "voc", part, "images", fmt.Sprintf("%d.png", i))
			put(t, mask.Bytes(), dir, "voc", part, "masks", fmt.Sprintf("%d.png", i))
		}
	}
	for _, group := range []string{"standard", "semi-supervised", "pretrained", "augmentation", "figure-8", "synesis-images"} {
		put(t, nil, dir, "zoo", group, "a.onnx")
	}
	return dir
}

// trained writes the folders that the trainings of a file would leave, without networks.
func trained(t *testing.T, f *recipe.File, folder string) {
	t.Helper()
	runs := "run\n"
	for _, one := range f.Trainings() {
		summary, err := json.Marshal(map[string]any{"name": one.Name, "kept": 1})
		if err != nil {
			t.Fatal(err)
		}
		runs += one.Folder() + "\n"
		put(t, summary, folder, one.Folder(), "summary.json")
		put(t, nil, folder, one.Folder(), "model.onnx")
		put(t, nil, folder, one.Folder(), "epochs/001.onnx")
	}
	if f.Folder() != "" {
		put(t, []byte(runs), folder, "runs.csv")
	}
}

// parametersAtPaperScale are the numbers of weights of the papers' networks, by training: those of
// torchvision's ResNets with the first convolution and the classes of CIFAR-100, and of VOC; then the
// running statistics of BatchNormalization, and mean and deviation of the preprocessing.
var parametersAtPaperScale = map[string]int64{
	"seis-augmentation/depth-18-augment-plain":       11_220_132 + 9_600 + 6,
	"seis-augmentation/depth-50-augment-plain":       23_705_252 + 53_120 + 6,
	"seis-classification/seed-1":                     23_549_012 + 53_120 + 6,
	"stir/network-resnet18-seed-1-adversarial-plain": 11_173_962 + 9_600 + 6,
	"stir/network-vgg16-seed-6-adversarial-at":       14_724_042 + 8_448 + 6,
}

var command = regexp.MustCompile(`noether (train|run) (papers/\S+\.yaml)(.*)`)

// TestPaperScale reads the commands of each paper's Makefile at its own scale. It builds networks of
// every training file, and checks that each study finds the networks that it names. The data
// are stand-ins: a few samples in the same formats.
func TestPaperScale(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	data := standIns(t)
	work := t.TempDir() // the networks and runs of the Makefiles
	var seen []string
	for _, paper := range fivePapers {
		for _, scale := range []string{"small", "paper"} {
			out, err := exec.Command("make", "-n", "-C", filepath.Join(root, "papers", paper), "SCALE="+scale, "DATA="+data, "NETWORKS="+filepath.Join(work, scale)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s", paper, err, out)
			}
			for _, m := range command.FindAllStringSubmatch(string(out), -1) {
				if seen = append(seen, m[2]); scale == "small" {
					continue
				}
				vars := map[string]string{}
				for _, v := range regexp.MustCompile(`--var (\w+)=('[^']*'|\S*)`).FindAllStringSubmatch(m[3], -1) {
					vars[v[1]] = strings.Trim(v[2], "'")
				}
				_, folder, _ := strings.Cut(m[3], " -o ")
				file := filepath.Join(root, m[2])
				if m[1] == "train" {
					checkTraining(t, file, strings.Fields(folder)[0], vars)
				} else {
					checkStudy(t, file, vars)
				}
			}
		}
	}
	for _, paper := range fivePapers {
		for _, pattern := range []string{"*.yaml", "training/*.yaml"} {
			files, err := filepath.Glob(filepath.Join(root, "papers", paper, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if name, _ := filepath.Rel(root, file); !slices.Contains(seen, name) && name != "papers/goodfellow/training/autoencoder.yaml" {
					t.Errorf("no command of the Makefile of %s uses %s", paper, name)
				}
			}
		}
	}
}

func checkTraining(t *testing.T, file, folder string, vars map[string]string) {
	t.Helper()
	f, err := recipe.Load(file, vars)
	if err != nil {
		t.Error(err)
		return
	}
	built := slices.Clip(f.Trainings()[:1]) // the first and those whose size is known: all would take minutes
	for _, one := range f.Trainings()[1:] {
		if parametersAtPaperScale[one.Name] > 0 {
			built = append(built, one)
		}
	}
	found, err := recipe.Predict(t.Context(), built, recipe.Options{})
	if err != nil {
		t.Errorf("%s: %v", file, err)
	}
	for _, p := range found {
		if want := parametersAtPaperScale[p.Name]; want > 0 && p.Parameters != want {
			t.Errorf("%s has %d weights, want %d", p.Name, p.Parameters, want)
		}
		if p.Missing != "" && !strings.Contains(p.Missing, "pictures") { // photographs have no format
			t.Errorf("%s: %s", p.Name, p.Missing)
		}
	}
	trained(t, f, folder)
}

func checkStudy(t *testing.T, file string, vars map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Parse(file, raw, vars)
	if err != nil {
		t.Error(err)
		return
	}
	for _, m := range s.Models {
		// The autoencoders are written by a program, and speech models are not downloaded.
		path := s.Resolve(m.Address().String())
		if strings.Contains(path, "goodfellow") || strings.Contains(path, "synesis-speech") {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: model %s: %v", file, m.Name, err)
		}
	}
}
