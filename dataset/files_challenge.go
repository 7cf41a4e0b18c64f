package dataset

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// challengeList has the WordNet synset of each class of the ImageNet challenge of 2012. Line n
// belongs to the class that the challenge's development kit gives the number n (ILSVRC2012_ID).
//
//go:embed imagenet_challenge.txt
var challengeList string

// validationImage matches the names of ImageNet's validation images. Its group is the number of the
// image, from 1 on.
var validationImage = regexp.MustCompile(`^ILSVRC2012_val_(\d{8})\.`)

// startsWithNumber reports whether the first line of a file is a whole number and nothing else.
func startsWithNumber(start string) bool {
	line, _, _ := strings.Cut(start, "\n")
	_, err := strconv.Atoi(strings.TrimSpace(line))
	return err == nil
}

// fromChallenge labels ImageNet's validation images by a file with the number of a class of the
// challenge in each line, ILSVRC2012_validation_ground_truth.txt of the development kit: line 1
// belongs to ILSVRC2012_val_00000001.JPEG. The label of an image is the synset of its class. The
// folder may lack some of the images.
func (l *fileList) fromChallenge(ctx context.Context, r io.Reader) error {
	synsets, err := challengeSynsets(r)
	if err != nil {
		return err
	}
	if err := l.find(ctx); err != nil {
		return err
	}
	texts := make([]string, len(l.files))
	for i, f := range l.files {
		m := validationImage.FindStringSubmatch(path.Base(f.name))
		if m == nil {
			return fmt.Errorf("line 1: a label without a file: each line must be a file name and a label, unless all images are named as those of ImageNet's validation set (ILSVRC2012_val_00000001.JPEG), and %s is not", f.name)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || n > len(synsets) {
			return fmt.Errorf("it has %d lines, and the label of %s would be in line %d", len(synsets), f.name, n)
		}
		texts[i] = synsets[n-1]
	}
	return l.label(texts)
}

// challengeSynsets reads the number of a class from each line and returns their synsets.
func challengeSynsets(r io.Reader) ([]string, error) {
	classes := strings.Fields(challengeList)
	var synsets []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(classes) {
			return nil, fmt.Errorf("line %d: %q is not the number of a class of the ImageNet challenge, 1 to %d", len(synsets)+1, text, len(classes))
		}
		synsets = append(synsets, classes[n-1])
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(synsets) == 0 {
		return nil, errors.New("no rows")
	}
	return synsets, nil
}
