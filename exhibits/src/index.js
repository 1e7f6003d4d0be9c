/** All exhibits, in one classic script that also runs on pages opened from disk. */
import './elements/blockspec-sandbox.js';
