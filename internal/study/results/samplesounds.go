package results

import (
	"bytes"
	"context"
	"slices"

	"github.com/noether-ml/noether/internal/audio"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

const (
	maxSoundBytes   = 1 << 20 // of the clips of a sheet
	maxSoundSeconds = 3       // of a clip, from its start
)

// recordSamples returns the clips of a sheet as one WAV file of 16 bits, and sets their places in
// sheet. It returns nil for data that are not sound. The samples that models get wrong or that
// change most have theirs first, until maxSoundBytes are used.
func (r *Writer) recordSamples(ctx context.Context, s *sampleValues, sheet *scores.SampleSheet) ([]byte, error) {
	first := s.cells[0]
	frame := first.Model.Net.Frame()
	var wave []float32
	var sound scores.SheetSound
	for _, line := range soundLines(sheet) {
		sample, err := first.Data.Source.At(ctx, s.samples[sheet.Samples[line].Index].SourceIndex, frame)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil || sample.Waveform == nil {
			return nil, nil
		}
		clips := []tensor.Tensor{sample.Input}
		for _, c := range s.cells {
			transformed, err := r.transformedSample(c, sample)
			if err != nil {
				return nil, nil // as in writeSheet
			}
			clips = append(clips, transformed)
		}
		if sound.Rate == 0 {
			sound.Rate = sample.Waveform.Rate
			sound.Length = min(sample.Input.Shape[1], maxSoundSeconds*sound.Rate, maxSoundBytes/2/len(clips))
		}
		if 2*(len(wave)+len(clips)*sound.Length) > maxSoundBytes {
			break
		}
		for _, clip := range clips {
			wave = append(wave, meanChannel(clip, sound.Length)...)
		}
		sound.Lines = append(sound.Lines, line)
	}
	if len(sound.Lines) == 0 {
		return nil, nil
	}
	sheet.Sound = &sound
	var b bytes.Buffer
	err := audio.WriteWAV16(&b, audio.Clip{Rate: sound.Rate, Wave: wave})
	return b.Bytes(), err
}

// soundLines returns the samples of a sheet in the order in which they are to be heard.
func soundLines(sheet *scores.SampleSheet) []int {
	var order []int
	add := func(lines []int) {
		for _, line := range lines {
			if !slices.Contains(order, line) {
				order = append(order, line)
			}
		}
	}
	for _, list := range []func(m scores.SheetModel) []int{
		func(m scores.SheetModel) []int { return m.Fails },
		func(m scores.SheetModel) []int { return m.Most },
		func(m scores.SheetModel) []int { return m.Least },
	} {
		for _, m := range sheet.Models {
			add(list(m))
		}
	}
	for line := range sheet.Samples {
		add([]int{line})
	}
	return order
}

// meanChannel returns the first n values of the mean of the channels of a clip, with zeros after a
// shorter one: recordings may differ in length.
func meanChannel(clip tensor.Tensor, n int) []float32 {
	channels, length := clip.Shape[0], clip.Shape[1]
	out := make([]float32, n)
	for c := range channels {
		for i, v := range clip.Data[c*length : c*length+min(n, length)] {
			out[i] += v / float32(channels)
		}
	}
	return out
}
