package open

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/onnx"
)

// ultralytics returns the preprocessing of a model that Ultralytics has exported, as it follows
// from the metadata of the file: values in [0, 1], and imgsz, the size of the images. Classifiers
// take the centre of the resized image, detectors the whole image with grey around it. The text is
// that of spec.PreprocessText; "": the metadata are others.
func ultralytics(path string) (p preprocessing.Settings, text string, err error) {
	entries := map[string]string{}
	for _, key := range []string{"task", "imgsz", "stride", "channels"} {
		if entries[key], err = onnx.ReadMetadata(path, key); err != nil {
			return p, "", nil // opening the model reports the error
		}
	}
	detects := slices.Contains([]string{"detect", "segment", "pose", "obb"}, entries["task"])
	if entries["imgsz"] == "" || entries["stride"] == "" || !detects && entries["task"] != "classify" {
		return p, "", nil
	}
	size, err := numbersOf(entries["imgsz"])
	if err != nil || len(size) == 0 || len(size) > 2 || slices.Min(size) < 1 {
		return p, "", fmt.Errorf("imgsz in the metadata of %s is %q, not a side or [height, width]; set preprocess", path, entries["imgsz"])
	}
	f := &p.Frame
	f.Height, f.Width = size[0], size[len(size)-1]
	if n, err := strconv.Atoi(entries["channels"]); err == nil {
		f.Channels = n
	}
	if detects {
		f.Letterbox, f.Fill = true, preprocessing.LetterboxFill
	} else {
		f.Resize = min(f.Height, f.Width)
	}
	text, _ = spec.PreprocessText(p)
	return p, text, nil
}

// numbersOf reads a number, or a list of numbers as Python prints it.
func numbersOf(text string) (numbers []int, err error) {
	for part := range strings.SplitSeq(strings.Trim(text, "[]() "), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
