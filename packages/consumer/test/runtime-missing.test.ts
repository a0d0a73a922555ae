import { expect, test, vi } from 'vitest'
import { loadOnnxRuntime } from '../src/runtimes/onnx/session.js'

vi.mock('onnxruntime-node', () => {
  throw new Error("Cannot find package 'onnxruntime-node'")
})

test('onnx runtime: without its package it says how to install it', async () => {
  await expect(loadOnnxRuntime()).rejects.toMatchObject({
    code: 'FABRIC_RUNTIME_MISSING',
    message: expect.stringContaining('npm install onnxruntime-node@1.30.0'),
  })
})
