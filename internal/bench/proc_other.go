//go:build !linux

package main

import (
	"errors"
	"runtime"
	"syscall"
	"time"
)

// defaultDrivers are those of wirewait that work here.
const defaultDrivers = "net"

var errLinuxOnly = errors.New("processor time and memory of another process are read from Linux's /proc: run the benchmarks there")

func ownSession() *syscall.SysProcAttr   { return nil }
func cpuTime(int) (time.Duration, error) { return 0, errLinuxOnly }
func resident(int) (int64, error)        { return 0, errLinuxOnly }
func processorModel() string             { return "unknown" }
func kernel() string                     { return runtime.GOOS }
func memoryLimit() int64                 { return 0 }
