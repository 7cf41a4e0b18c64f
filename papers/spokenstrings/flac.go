package main

import (
	"bytes"
	"math"
	"os"

	"github.com/mewkiz/flac"
	"github.com/mewkiz/flac/frame"
	"github.com/mewkiz/flac/meta"
)

// block is the number of samples of a FLAC frame.
const block = 4096

// writeFLAC writes a waveform as 16-bit FLAC, without compression (verbatim subframes). Values
// beyond [-1, 1] are clipped.
func writeFLAC(file string, wave []float32, rate int) error {
	var out bytes.Buffer
	info := &meta.StreamInfo{BlockSizeMin: block, BlockSizeMax: block, SampleRate: uint32(rate), NChannels: 1, BitsPerSample: 16, NSamples: uint64(len(wave))}
	encoder, err := flac.NewEncoder(&out, info)
	if err != nil {
		return err
	}
	for from := 0; from < len(wave); from += block {
		part := wave[from:min(from+block, len(wave))]
		samples := make([]int32, len(part))
		for i, v := range part {
			samples[i] = int32(math.Round(max(math.MinInt16, min(math.MaxInt16, 1<<15*float64(v)))))
		}
		f := &frame.Frame{
			Header:    frame.Header{HasFixedBlockSize: true, BlockSize: uint16(len(part)), SampleRate: uint32(rate), Channels: frame.ChannelsMono, BitsPerSample: 16},
			Subframes: []*frame.Subframe{{SubHeader: frame.SubHeader{Pred: frame.PredVerbatim}, Samples: samples, NSamples: len(part)}},
		}
		if err := encoder.WriteFrame(f); err != nil {
			return err
		}
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o666)
}
