// What the workers of `npm run test:soak -- core` and `core-mutations` run, bundled.
export { failureOf, ruleOf } from './shrink.js'
export { told } from './tell.js'
export { workload } from './workload.js'
